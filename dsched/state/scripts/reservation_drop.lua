-- reservation_drop: end reservations that nobody can read; what they had charged is counted anew by who calls this.
-- KEYS[1] leader:epoch  string  the present epoch
-- KEYS[2] reservations  hash    uid to "NS/NAME NODE EPOCH STATE ATTEMPT SINCE_MS"
-- KEYS[3] devices       hash    uid to {holder: {device, share or counter: amount}}, JSON
-- KEYS[4] devices:used  hash    device, share or counter to how much reserved pods take of it
-- ARGV[1] epoch   int  the caller's epoch
-- ARGV[2] cursor  int  0 to begin, then what the last call returned
-- ARGV[3] count   int  about how many are looked at
-- RETURNS [cursor, uid, text, …]: 0 at the end; those that were ended
-- INCLUDE fence
-- INCLUDE in_bulk
-- INCLUDE charges
-- INCLUDE devices
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local STATES, LONGEST = { reserved = true, waiting = true, binding = true }, 4096
local looked = redis.call("HSCAN", KEYS[2], ARGV[2], "COUNT", ARGV[3])
local dropped, held = { looked[1] }, looked[2]
for at = 1, #held, 2 do
  local state, attempt, since = string.match(held[at + 1], "^%S+/%S+ %S+ %d+ (%S+) (%d+) (%d+)$")
  local known = STATES[state] and #attempt <= 18 and #since <= 18 and #held[at + 1] <= LONGEST
  if not known or string.find(held[at] .. held[at + 1], "[^ -~]") then
    redis.call("HDEL", KEYS[2], held[at])
    give_back_devices(KEYS[3], KEYS[4], held[at])
    dropped[#dropped + 1] = held[at]
    dropped[#dropped + 1] = held[at + 1]
  end
end
return dropped
