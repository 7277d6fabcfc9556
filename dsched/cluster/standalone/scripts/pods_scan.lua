-- pods_scan: read a part of the pods with all that is kept about each, as of one moment.
-- KEYS[1] cluster:pods         hash  pod key to the pod
-- KEYS[2] cluster:pods:state   hash  pod key to its state line
-- KEYS[3] cluster:pods:status  hash  pod key to what the scheduler wrote
-- ARGV[1] cursor  int  0 to begin, then what the last call returned
-- ARGV[2] count   int  about how many pods
-- RETURNS {cursor, 0 at the end; [key, pod, …]; state lines; statuses, nil for none}
local reply = redis.call("HSCAN", KEYS[1], ARGV[1], "COUNT", ARGV[2])
local found = reply[2]
local keys, number = {}, 0
for at = 1, #found, 2 do
  number = number + 1
  keys[number] = found[at]
end
if number == 0 then
  return { reply[1], {}, {}, {} }
end
-- The pods are handed on as they come: what is copied once more costs a tenth of it all.
return { reply[1], found, redis.call("HMGET", KEYS[2], unpack(keys)), redis.call("HMGET", KEYS[3], unpack(keys)) }
