-- bind_begin: a binder asks, right before it binds, whether the reservations still stand, and marks them.
-- KEYS[1] leader:epoch  string  the present epoch
-- KEYS[2] reservations  hash    uid to "NS/NAME NODE EPOCH STATE ATTEMPT SINCE_MS"
-- ARGV[1] epoch  int      epoch of the job
-- ARGV[2] pods   msgpack  [[key, uid, node], …]
-- RETURNS per pod 1 go on | 0 drop it; error STALE_EPOCH for the whole job
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local standing = {}
for number, pod in ipairs(cmsgpack.unpack(ARGV[2])) do
  local wanted = pod[1] .. " " .. pod[3] .. " " .. ARGV[1]
  local text = redis.call("HGET", KEYS[2], pod[2])
  local held, state, rest = string.match(text or "", "^(%S+ %S+ %S+) (%S+) (.*)$")
  if held == wanted and (state == "reserved" or state == "binding") then
    if state == "reserved" then
      redis.call("HSET", KEYS[2], pod[2], held .. " binding " .. rest)
    end
    standing[number] = 1
  else
    standing[number] = 0
  end
end
return standing
