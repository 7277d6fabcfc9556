-- lease_renew: keep the lease; take it up again when it ran out and nobody else has led since.
-- KEYS[1] leader        string  "IDENTITY EPOCH", expires with the lease
-- KEYS[2] leader:epoch  string  the present epoch
-- ARGV[1] epoch         int     the caller's epoch
-- ARGV[2] identity      text    the caller
-- ARGV[3] ttl_ms        int     how long it lasts from now on
-- RETURNS 1 | error STALE_EPOCH
-- INCLUDE fence
if not fenced(KEYS[2], ARGV[1]) then
  return stale(ARGV[1])
end
redis.call("SET", KEYS[1], ARGV[2] .. " " .. ARGV[1], "PX", ARGV[3])
return 1
