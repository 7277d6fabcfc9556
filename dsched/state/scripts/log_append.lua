-- log_append: append changes of the node table to the log that the evaluators' replicas follow.
-- KEYS[1] leader:epoch  string  the present epoch
-- KEYS[2] nodes:log     stream  entries "VERSION-0": changes up to that version of the table
-- ARGV[1] epoch    int      the caller's epoch
-- ARGV[2] version  int      the table's version after the changes; higher than any before
-- ARGV[3] first    0|1      whether a replica can start here: the entry empties the table first
-- ARGV[4] deltas   msgpack  the changes
-- ARGV[5] keep     int      oldest version to keep, 0 for all
-- RETURNS 1 | error STALE_EPOCH
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
redis.call("XADD", KEYS[2], ARGV[2] .. "-0", "epoch", ARGV[1], "first", ARGV[3], "deltas", ARGV[4])
if ARGV[5] ~= "0" then
  redis.call("XTRIM", KEYS[2], "MINID", ARGV[5] .. "-0")
end
return 1
