-- tape_append: add lines to the recording that somebody has asked for; refused when he does not read, or is gone.
-- KEYS[1] leader:epoch  string  the present epoch
-- KEYS[2] recorder      string  who records, "TOKEN WHO"; expires unless he says again that he is there
-- KEYS[3] recording     stream  the lines that he has not read yet
-- ARGV[1] epoch   int   the caller's epoch
-- ARGV[2] token   text  of the recorder whom the lines are for
-- ARGV[3] number  int   of this entry since the leader began to tell, from 1 on
-- ARGV[4] lines   text  JSON, a line each
-- ARGV[5] most    int   entries that may wait to be read; 0 for any number
-- ARGV[6] kept_s  int   the stream expires so long after its last entry
-- RETURNS 1 added | 0 too much waits to be read already | -1 that recorder is gone
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local recorder = redis.call("GET", KEYS[2])
if not recorder or recorder:sub(1, #ARGV[2] + 1) ~= ARGV[2] .. " " then
  return -1
end
if ARGV[5] ~= "0" and redis.call("XLEN", KEYS[3]) >= tonumber(ARGV[5]) then
  return 0
end
redis.call("XADD", KEYS[3], "*", "token", ARGV[2], "number", ARGV[3], "lines", ARGV[4])
redis.call("EXPIRE", KEYS[3], ARGV[6])
return 1
