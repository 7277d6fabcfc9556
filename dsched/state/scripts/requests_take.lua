-- requests_take: take what commands ask of the leader off the list; one that is killed now leaves them unanswered.
-- KEYS[1] leader:epoch      string  the present epoch
-- KEYS[2] control:requests  list    what commands ask, oldest first
-- ARGV[1] epoch  int  the caller's epoch
-- ARGV[2] count  int  requests at most
-- RETURNS the requests; none where the key is no list, which is deleted then
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
if redis.call("TYPE", KEYS[2]).ok ~= "list" then
  redis.call("DEL", KEYS[2])  -- nobody of ours has written it
  return {}
end
local asked = redis.call("LRANGE", KEYS[2], 0, ARGV[2] - 1)
if #asked > 0 then
  redis.call("LTRIM", KEYS[2], #asked, -1)
end
return asked
