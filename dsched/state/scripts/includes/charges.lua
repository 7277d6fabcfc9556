-- charges: what the pods on a node take up, as fields used.RESOURCE of node:NAME; each change moves its version by one.
-- Sums are exact: what an int64 cannot hold is kept as a longer decimal number, in limbs of LIMB digits while it is added
-- up, for Lua's numbers are exact only up to 2^53. A field that is no number stays as it is until it is counted anew.
-- Includes before it: in_bulk.
local LIMB = 14
local BASE = 10 ^ LIMB
local function limbs(number)
  local sign, digits = string.match(number, "^(-?)(%d+)$")
  local found = {}
  for last = #digits, 1, -LIMB do
    found[#found + 1] = tonumber(sign .. string.sub(digits, math.max(1, last - LIMB + 1), last))
  end
  return found
end
local function carry(total)
  for place = 1, #total - 1 do
    local over = math.floor(total[place] / BASE)
    total[place] = total[place] - over * BASE
    total[place + 1] = total[place + 1] + over
  end
  return total[#total] < 0
end
local SHORT = 15 -- digits of which Lua adds up two numbers exactly
local function sum(number, more)
  if #number <= SHORT and #more <= SHORT then
    local short = tonumber(number) + tonumber(more)
    return short == 0 and "0" or string.format("%.0f", short)
  end
  local total, added = limbs(number), limbs(more)
  for place = 1, math.max(#total, #added) + 1 do
    total[place] = (total[place] or 0) + (added[place] or 0)
  end
  local negative = carry(total)
  if negative then
    for place = 1, #total do
      total[place] = -total[place]
    end
    carry(total)
  end
  local digits = {}
  for place = #total, 1, -1 do
    digits[#digits + 1] = string.format("%0" .. LIMB .. ".0f", total[place])
  end
  local text = string.gsub(table.concat(digits), "^0+", "")
  return text == "" and "0" or (negative and "-" or "") .. text
end
local function is_number(text)
  return string.find(text, "^-?%d+$") ~= nil
end
local function is_below_zero(number)
  return string.sub(number, 1, 1) == "-"
end
local function minus(number)
  return is_below_zero(number) and string.sub(number, 2) or "-" .. number
end
local function count_up(key, field)
  if type(redis.pcall("HINCRBY", key, field, 1)) ~= "number" then
    redis.call("HSET", key, field, 1)
  end
end
-- A node's version and that of its object, and what is used of these resources, by field; false where there is none.
local function look_at(node_key, amounts)
  local fields, seen = { "version", "object" }, {}
  for resource in pairs(amounts) do
    fields[#fields + 1] = "used." .. resource
  end
  for number, value in ipairs(read_in_bulk(node_key, fields)) do
    seen[fields[number]] = value
  end
  return seen
end
-- Args: seen: what `look_at` has just found; it is looked at where that is not given.
local function charge(node_key, amounts, sign, seen)
  seen = seen or look_at(node_key, amounts)
  local version = seen.version
  local changed = { "version", version and is_number(version) and sum(version, "1") or "1" }
  for resource, amount in pairs(amounts) do
    local field = "used." .. resource
    local used = seen[field] or "0"
    if is_number(used) then
      changed[#changed + 1] = field
      changed[#changed + 1] = sum(used, sign .. amount)
    end
  end
  in_bulk(changed, function(...)
    redis.call("HSET", node_key, ...)
  end)
end
