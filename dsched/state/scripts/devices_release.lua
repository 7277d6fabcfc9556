-- devices_release: reserved pods no longer hold devices by themselves: their claims say in the cluster who has them.
-- KEYS[1] leader:epoch  string  the present epoch
-- KEYS[2] devices       hash    uid to {holder: {device, share or counter: amount}}, JSON
-- KEYS[3] devices:used  hash    device, share or counter to how much reserved pods take of it
-- ARGV[1] epoch  int      the caller's epoch
-- ARGV[2] held   msgpack  [[uid, holder], …]
-- RETURNS per holder 1 | 0 it held nothing
-- INCLUDE fence
-- INCLUDE in_bulk
-- INCLUDE charges
-- INCLUDE devices
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local released = {}
for number, item in ipairs(cmsgpack.unpack(ARGV[2])) do
  released[number] = give_back_devices(KEYS[2], KEYS[3], item[1], item[2]) and 1 or 0
end
return released
