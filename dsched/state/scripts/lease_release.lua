-- lease_release: give the lease back, so that a standby need not wait for it to run out.
-- KEYS[1] leader        string  "IDENTITY EPOCH", expires with the lease
-- KEYS[2] leader:epoch  string  the present epoch
-- ARGV[1] epoch         int     the caller's epoch
-- RETURNS 1 | error STALE_EPOCH
-- INCLUDE fence
if not fenced(KEYS[2], ARGV[1]) then
  return stale(ARGV[1])
end
redis.call("DEL", KEYS[1])
return 1
