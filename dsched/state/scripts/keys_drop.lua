-- keys_drop: delete keys whose type is none that dsched writes there; what stood in them is made anew by who calls this.
-- KEYS[1] leader:epoch  string  the present epoch
-- ARGV[1] epoch   int      the caller's epoch
-- ARGV[2] wanted  msgpack  [[full name, type that it has to have where it is there], …]
-- RETURNS [name, type found, …] of those that were deleted | error STALE_EPOCH
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local dropped = {}
for _, wanted in ipairs(cmsgpack.unpack(ARGV[2])) do
  local type = redis.call("TYPE", wanted[1]).ok
  if type ~= "none" and type ~= wanted[2] then
    redis.call("DEL", wanted[1])
    dropped[#dropped + 1] = wanted[1]
    dropped[#dropped + 1] = type
  end
end
return dropped
