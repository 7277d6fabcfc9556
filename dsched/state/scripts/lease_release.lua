-- lease_release: give the lease back, so that a standby need not wait for it to run out, and wake all that stand by.
-- KEYS[1] leader           string  "IDENTITY EPOCH", expires with the lease
-- KEYS[2] leader:epoch     string  the present epoch
-- KEYS[3] leader:released  stream  one entry, EPOCH-0: the lease that was given back last
-- ARGV[1] epoch            int     the caller's epoch
-- RETURNS 1 | error STALE_EPOCH
-- INCLUDE fence
if not fenced(KEYS[2], ARGV[1]) then
  return stale(ARGV[1])
end
redis.call("DEL", KEYS[1], KEYS[3])
redis.call("XADD", KEYS[3], ARGV[1] .. "-0", "epoch", ARGV[1])
return 1
