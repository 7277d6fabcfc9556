-- reservation_mark: reservations go from one state into another, those that are in it: reserved to cancelled, where no
-- binder may begin any more, or binding to reserved, where PreBind was not ready and nobody is at work on it.
-- KEYS[1] leader:epoch  string  the present epoch
-- KEYS[2] reservations  hash    uid to "NS/NAME NODE EPOCH STATE ATTEMPT SINCE_MS"
-- ARGV[1] epoch   int      the caller's epoch
-- ARGV[2] before  text     the state that they are in
-- ARGV[3] after   text     the state that they come into
-- ARGV[4] uids    msgpack  [uid, …]
-- RETURNS per pod 1 | 0 it is in another state, or nothing is reserved for it
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local marked = {}
for number, uid in ipairs(cmsgpack.unpack(ARGV[4])) do
  local held, state, rest = string.match(redis.call("HGET", KEYS[2], uid) or "", "^(%S+ %S+ %S+) (%S+) (.*)$")
  marked[number] = 0
  if state == ARGV[2] then
    redis.call("HSET", KEYS[2], uid, table.concat({ held, ARGV[3], rest }, " "))
    marked[number] = 1
  end
end
return marked
