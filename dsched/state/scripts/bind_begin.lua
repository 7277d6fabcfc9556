-- bind_begin: a binder asks, right before it binds, whether the reservations of its job still stand, and marks them.
-- KEYS[1] leader:epoch  string  the present epoch
-- KEYS[2] reservations  hash    uid to "NS/NAME NODE EPOCH STATE ATTEMPT SINCE_MS"
-- ARGV[1] epoch  int      epoch of the job
-- ARGV[2] pods   msgpack  [[key, uid, node, attempt], …]
-- RETURNS per pod 1 go on | 0 drop it; error STALE_EPOCH for the whole job
-- INCLUDE fence
-- INCLUDE in_bulk
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local pods, uids = cmsgpack.unpack(ARGV[2]), {}
for number, pod in ipairs(pods) do
  uids[number] = pod[2]
end
local texts = read_in_bulk(KEYS[2], uids)
local standing, marked = {}, {}
for number, pod in ipairs(pods) do
  local wanted = pod[1] .. " " .. pod[3] .. " " .. ARGV[1]
  local held, state, rest = string.match(texts[number] or "", "^(%S+ %S+ %S+) (%S+) (.*)$")
  local of_attempt = string.match(rest or "", "^(%S+)") == tostring(pod[4])
  if held == wanted and of_attempt and (state == "reserved" or state == "binding") then
    if state == "reserved" then
      marked[#marked + 1] = pod[2]
      marked[#marked + 1] = held .. " binding " .. rest
    end
    standing[number] = 1
  else
    standing[number] = 0
  end
end
in_bulk(marked, function(...)
  redis.call("HSET", KEYS[2], ...)
end)
return standing
