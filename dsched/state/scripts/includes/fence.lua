-- fence: true when the caller's epoch is the present one; every script that changes scheduling state asks first. Before
-- the first leader, or when Redis has lost the epoch, there is none that would do.
local function fenced(epoch_key, epoch)
  return redis.call("GET", epoch_key) == epoch
end
local function stale(epoch)
  return redis.error_reply("STALE_EPOCH " .. epoch)
end
