-- lease_acquire: take the lease, under a new epoch, when nobody else holds it.
-- KEYS[1] leader        string  "IDENTITY EPOCH", expires with the lease
-- KEYS[2] leader:epoch  string  the present epoch; grows for ever
-- ARGV[1] identity      text    who asks; no two processes have the same
-- ARGV[2] ttl_ms        int     how long the lease lasts without renewal
-- ARGV[3] at_least      int     highest epoch the caller has ever seen; the new one is higher, whatever Redis has lost
-- ARGV[4] longest_ms    int     no leader's lease lasts longer; one that does is cut to that
-- RETURNS [the new epoch | minus the present epoch: somebody else holds the lease, how long the lease lasts still, ms,
--   how long somebody else's lasted before it was cut, ms, 0 where it was not,
--   what was there that no leader wrote: leader, leader:epoch, …]
local MOST = 9e15
local garbage = {}
local function text(key, name, pattern)
  local type, found = redis.call("TYPE", key).ok, nil
  if type == "string" then
    found = redis.call("GET", key)
  end
  if type ~= "none" and not string.match(found or "", pattern) then
    garbage[#garbage + 1] = name
    redis.call("DEL", key)
    return ""
  end
  return found or ""
end
local held = text(KEYS[1], "leader", "^.* %d+$")
local present = text(KEYS[2], "leader:epoch", "^%d+$")
if present ~= "" and tonumber(present) > MOST then
  garbage[#garbage + 1] = "leader:epoch"
  present = ""
end
local holder, under = string.match(held, "^(.*) (%d+)$")
-- A lease that never runs out is nobody's: no leader writes one.
if holder and holder ~= ARGV[1] and redis.call("PTTL", KEYS[1]) < 0 then
  garbage[#garbage + 1] = "leader"
  holder = nil
end
if holder and holder ~= ARGV[1] then
  -- Redis' clock went back, or a hand wrote it. A leader that lives renews it long before its end, cut as it is.
  local left, longest, cut = redis.call("PTTL", KEYS[1]), tonumber(ARGV[4]), 0
  if left > longest then
    redis.call("PEXPIRE", KEYS[1], longest)
    left, cut = longest, left
  end
  return { -(tonumber(present) or 0), left, cut, unpack(garbage) }
end
local last = tonumber(present) or tonumber(under) or 0
local epoch = math.max(last > MOST and 0 or last, tonumber(ARGV[3])) + 1
redis.call("SET", KEYS[2], string.format("%d", epoch))
redis.call("SET", KEYS[1], ARGV[1] .. " " .. string.format("%d", epoch), "PX", ARGV[2])
return { epoch, tonumber(ARGV[2]), 0, unpack(garbage) }
