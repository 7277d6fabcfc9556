-- in_bulk: one command about many fields or keys instead of one each, in portions that Lua can unpack. IN_BULK is even, so
-- that fields stay with their values.
local IN_BULK = 1000

local function in_bulk(items, call)
  for from = 1, #items, IN_BULK do
    call(unpack(items, from, math.min(from + IN_BULK - 1, #items)))
  end
end

local function read_in_bulk(key, fields)
  local found = {}
  for from = 1, #fields, IN_BULK do
    local values = redis.call("HMGET", key, unpack(fields, from, math.min(from + IN_BULK - 1, #fields)))
    for number, value in ipairs(values) do
      found[from + number - 1] = value
    end
  end
  return found
end
