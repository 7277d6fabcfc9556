-- reservation_adopt: take over reservations of earlier epochs; bind jobs handed out under those can no longer bind.
-- KEYS[1] leader:epoch  string  the present epoch
-- KEYS[2] reservations  hash    uid to "NS/NAME NODE EPOCH STATE ATTEMPT SINCE_MS"
-- ARGV[1] epoch  int      the caller's epoch
-- ARGV[2] uids   msgpack  [uid, …]
-- RETURNS number adopted
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local adopted = 0
for _, uid in ipairs(cmsgpack.unpack(ARGV[2])) do
  local standing = redis.call("HGET", KEYS[2], uid)
  if standing then
    local held, state, rest = string.match(standing, "^(%S+ %S+) %S+ (%S+) (.*)$")
    state = state == "waiting" and state or "reserved"
    redis.call("HSET", KEYS[2], uid, table.concat({ held, ARGV[1], state, rest }, " "))
    adopted = adopted + 1
  end
end
return adopted
