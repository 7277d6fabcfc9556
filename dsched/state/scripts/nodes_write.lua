-- nodes_write: bring usage of nodes, or of queues with limits, up to date with the cluster.
-- KEYS[1] leader:epoch  string  the present epoch
-- KEYS[2] node:         prefix  of the nodes' usage, hashes node:NAME; or quota: of the queues'
-- ARGV[1] epoch    int      the caller's epoch
-- ARGV[2] changes  msgpack  [[what, name, {resource: amount}, …], …]; what is
--                           "reset" (then {used} follows {allocatable}), "set" (allocatable), "add", "sub" (used), "gone"
-- RETURNS 1 | error STALE_EPOCH
-- INCLUDE fence
-- INCLUDE in_bulk
-- INCLUDE charges
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local function write_allocatable(key, amounts)
  for resource, amount in pairs(amounts) do
    redis.call("HSET", key, "allocatable." .. resource, amount)
  end
end
for _, change in ipairs(cmsgpack.unpack(ARGV[2])) do
  local what, name, amounts, used = unpack(change)
  local key = KEYS[2] .. name
  if what == "gone" then
    redis.call("DEL", key)
  elseif what == "reset" then
    local version = redis.pcall("HGET", key, "version")
    if type(version) ~= "string" or not string.find(version, "^%d+$") or #version > LIMB then
      version = "0"
    end
    redis.call("DEL", key)
    redis.call("HSET", key, "version", version, "object", version)
    write_allocatable(key, amounts)
    charge(key, used, "")
  elseif what == "set" then
    for _, field in ipairs(redis.call("HKEYS", key)) do
      if string.find(field, "^allocatable%.") then
        redis.call("HDEL", key, field)
      end
    end
    write_allocatable(key, amounts)
    count_up(key, "object")
    count_up(key, "version")
  elseif redis.call("EXISTS", key) == 1 then
    charge(key, amounts, what == "sub" and "-" or "")
  end
end
return 1
