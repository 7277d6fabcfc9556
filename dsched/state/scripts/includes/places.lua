-- places: a pod's way in and out of the queues; a pod's record names the one place where it is. Pods of a group stand
-- beside it, in the zset of the last key; their records have the group as `place`.
local ZSETS = { active = KEYS[2], backoff = KEYS[3], unschedulable = KEYS[4], gated = KEYS[5], waiting = KEYS[7] }
local function leave(key, queue, place)
  if queue == "inflight" then
    redis.call("HDEL", KEYS[6], key)
  elseif queue == "active" then
    redis.call("ZREM", KEYS[2], place .. " " .. key)
  elseif queue == "group" then
    redis.call("ZREM", KEYS[#KEYS], place .. " " .. key)
  elseif ZSETS[queue] then
    redis.call("ZREM", ZSETS[queue], key)
  end
end
local function enter(key, queue, score, place)
  if queue == "active" then
    redis.call("ZADD", KEYS[2], score, place .. " " .. key)
  elseif queue == "group" then
    redis.call("ZADD", KEYS[#KEYS], score, place .. " " .. key)
  elseif queue == "inflight" then
    redis.call("HSET", KEYS[6], key, ARGV[1] .. " group")
  elseif ZSETS[queue] then
    redis.call("ZADD", ZSETS[queue], score, key)
  end
end
