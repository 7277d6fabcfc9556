-- log_append: append changes of the node table to the log that the evaluators' replicas follow, where its last entry is
-- the leader's own. A whole table takes the place of what another leader, or somebody else, has written.
-- KEYS[1] leader:epoch  string  the present epoch
-- KEYS[2] nodes:log     stream  entries "VERSION-0": changes up to that version of the table
-- ARGV[1] epoch    int      the caller's epoch
-- ARGV[2] version  int      the table's version after the changes; higher than any before
-- ARGV[3] first    0|1      whether a replica can start here: the entry empties the table first
-- ARGV[4] deltas   msgpack  the changes
-- ARGV[5] keep     int      oldest version to keep, 0 for all
-- ARGV[6] before   int      version of the leader's last entry
-- RETURNS 1 | 0 nothing was appended, for somebody else has written here: begin anew | error STALE_EPOCH
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local last = redis.call("TYPE", KEYS[2]).ok == "stream" and redis.call("XREVRANGE", KEYS[2], "+", "-", "COUNT", 1)[1]
if not last or last[1] ~= ARGV[6] .. "-0" then
  if ARGV[3] == "0" then
    return 0
  end
  redis.call("DEL", KEYS[2])
end
redis.call("XADD", KEYS[2], ARGV[2] .. "-0", "epoch", ARGV[1], "first", ARGV[3], "deltas", ARGV[4])
if ARGV[5] ~= "0" then
  redis.call("XTRIM", KEYS[2], "MINID", ARGV[5] .. "-0")
end
return 1
