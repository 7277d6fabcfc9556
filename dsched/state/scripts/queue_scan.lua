-- queue_scan: read a part of the records of pending pods, each as of one moment.
-- KEYS[1] pod:  prefix  of the pods' records, hashes pod:NS/NAME
-- ARGV[1] cursor   int   0 to begin, then what the last call returned
-- ARGV[2] pattern  text  that the names of the records match, and no others
-- ARGV[3] count    int   about how many keys to look at
-- RETURNS {cursor, 0 at the end; [NS/NAME, [field, value, …]], msgpack}; one may come twice
local found = redis.call("SCAN", ARGV[1], "MATCH", ARGV[2], "COUNT", ARGV[3])
local records = {}
for number, name in ipairs(found[2]) do
  records[number] = { string.sub(name, #KEYS[1] + 1), redis.call("HGETALL", name) }
end
return { found[1], cmsgpack.pack(records) }
