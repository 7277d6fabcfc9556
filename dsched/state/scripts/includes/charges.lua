-- charges: what the pods on a node take up, as fields used.RESOURCE of node:NAME; each change moves its version by one.
-- Sums are exact: what HINCRBY cannot hold is kept as a longer decimal number, in limbs of LIMB digits while it is added
-- up, for Lua's numbers are exact only up to 2^53. A field that is no number stays as it is until it is counted anew.
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
local function charge(node_key, amounts, sign)
  for resource, amount in pairs(amounts) do
    local field = "used." .. resource
    if type(redis.pcall("HINCRBY", node_key, field, sign .. amount)) ~= "number" then
      local used = redis.call("HGET", node_key, field) or "0"
      if is_number(used) then
        redis.call("HSET", node_key, field, sum(used, sign .. amount))
      end
    end
  end
  count_up(node_key, "version")
end
