-- config_publish: tell which configuration the leader has, for workers to take up; killed before it, they refuse to work.
-- KEYS[1] leader:epoch          string  the present epoch
-- KEYS[2] leader:configuration  string  JSON
-- ARGV[1] epoch  int   the caller's epoch
-- ARGV[2] told   text  JSON
-- RETURNS 1 | error STALE_EPOCH
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
redis.call("SET", KEYS[2], ARGV[2])
return 1
