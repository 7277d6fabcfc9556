-- devices_write: write what reserved pods hold of devices as a new leader has counted it.
-- KEYS[1] leader:epoch  string  the present epoch
-- KEYS[2] devices       hash    uid to {holder: {device, share or counter: amount}}, JSON
-- KEYS[3] devices:used  hash    device, share or counter to how much reserved pods take of it
-- ARGV[1] epoch   int      the caller's epoch
-- ARGV[2] fields  msgpack  [[0 for devices | 1 for devices:used, field, text ("" deletes it)], …]
-- RETURNS number written
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local written = { [0] = KEYS[2], [1] = KEYS[3] }
local fields = cmsgpack.unpack(ARGV[2])
for _, item in ipairs(fields) do
  local which, field, text = unpack(item)
  if text == "" then
    redis.call("HDEL", written[which], field)
  else
    redis.call("HSET", written[which], field, text)
  end
end
return #fields
