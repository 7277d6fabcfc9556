-- results_ack: drop bind results that have been acted on.
-- KEYS[1] leader:epoch  string  the present epoch
-- KEYS[2] bind:results  stream  one entry a bind job
-- ARGV[1] epoch  int      the caller's epoch
-- ARGV[2] ids    msgpack  [entry id, …]
-- RETURNS number dropped
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local dropped = 0
for _, id in ipairs(cmsgpack.unpack(ARGV[2])) do
  dropped = dropped + redis.call("XDEL", KEYS[2], id)
end
return dropped
