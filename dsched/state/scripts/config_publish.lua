-- config_publish: tell which configuration the leader has, for workers to take up; killed before it, they refuse to work.
-- KEYS[1] leader:epoch   string  the present epoch
-- KEYS[2] configuration  hash    epoch, hash, cluster, source, text, withheld, code
-- ARGV[1] epoch   int      the caller's epoch
-- ARGV[2] fields  msgpack  [field, value, …], all of them
-- RETURNS 1 | error STALE_EPOCH
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
redis.call("DEL", KEYS[2])
redis.call("HSET", KEYS[2], unpack(cmsgpack.unpack(ARGV[2])))
return 1
