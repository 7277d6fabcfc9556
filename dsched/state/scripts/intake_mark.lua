-- intake_mark: note up to which version of the cluster everything has been taken into the queues.
-- KEYS[1] leader:epoch  string  the present epoch
-- KEYS[2] intake        hash    version, schedulers, cluster, held_back, settled
-- ARGV[1] epoch       int   the caller's epoch
-- ARGV[2] version     int   the cluster's version
-- ARGV[3] schedulers  text  scheduler names whose pods are taken in, separated by spaces
-- ARGV[4] cluster     text  what keeps the objects: standalone or kubernetes
-- ARGV[5] held_back   int   entries of queue:active that limits of queues hold back, when there was nothing else to try
-- ARGV[6] settled     0|1   whether there is nothing else left to try
-- RETURNS 1 | error STALE_EPOCH
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
redis.call("HSET", KEYS[2], "version", ARGV[2], "schedulers", ARGV[3], "cluster", ARGV[4], "held_back", ARGV[5])
if ARGV[6] == "1" then
  redis.call("HSET", KEYS[2], "settled", ARGV[1])
else
  redis.call("HDEL", KEYS[2], "settled")
end
return 1
