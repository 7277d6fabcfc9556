-- lease_acquire: take the lease, under a new epoch, when nobody else holds it.
-- KEYS[1] leader        string  "IDENTITY EPOCH", expires with the lease
-- KEYS[2] leader:epoch  string  the present epoch; grows for ever
-- ARGV[1] identity      text    who asks; no two processes have the same
-- ARGV[2] ttl_ms        int     how long the lease lasts without renewal
-- ARGV[3] at_least      int     highest epoch the caller has ever seen; the new one is higher, whatever Redis has lost
-- RETURNS [the new epoch, ttl_ms] | [minus the present epoch, how long the lease of who holds it lasts still, ms]
local held = redis.call("GET", KEYS[1])
local holder = held and (string.match(held, "^(.*) %d+$") or held)
if holder and holder ~= ARGV[1] then
  return { -tonumber(redis.call("GET", KEYS[2]) or 0), redis.call("PTTL", KEYS[1]) }
end
local epoch = redis.call("INCR", KEYS[2])
if epoch <= tonumber(ARGV[3]) then
  epoch = tonumber(ARGV[3]) + 1
  redis.call("SET", KEYS[2], epoch)
end
redis.call("SET", KEYS[1], ARGV[1] .. " " .. epoch, "PX", ARGV[2])
return { epoch, tonumber(ARGV[2]) }
