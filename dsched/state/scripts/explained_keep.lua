-- explained_keep: keep what was said at attempts, newest first, so many a pod and of so many pods; older ones go.
-- KEYS[1] leader:epoch   string  the present epoch
-- KEYS[2] explained:     prefix  of the lists explained:NS/NAME
-- KEYS[3] explanations   zset    NS/NAME by its last attempt, ms
-- ARGV[1] epoch     int      the caller's epoch
-- ARGV[2] now_ms    int      the caller's clock
-- ARGV[3] attempts  int      kept of a pod
-- ARGV[4] pods      int      of which any are kept
-- ARGV[5] kept_s    int      a list expires so long after its last attempt
-- ARGV[6] told      msgpack  [[key, what was said], …]
-- RETURNS number of pods whose attempts were dropped to make room
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local all = cmsgpack.unpack(ARGV[6])
for _, told in ipairs(all) do
  local list = KEYS[2] .. told[1]
  redis.call("LPUSH", list, told[2])
  redis.call("LTRIM", list, 0, ARGV[3] - 1)
  redis.call("EXPIRE", list, ARGV[5])
  redis.call("ZADD", KEYS[3], ARGV[2], told[1])
end
local over = math.min(redis.call("ZCARD", KEYS[3]) - ARGV[4], 2 * #all)
if over <= 0 then
  return 0
end
local oldest = redis.call("ZPOPMIN", KEYS[3], over)
for at = 1, #oldest, 2 do
  redis.call("DEL", KEYS[2] .. oldest[at])
end
return #oldest / 2
