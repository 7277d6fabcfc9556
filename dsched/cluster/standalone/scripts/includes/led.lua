-- led: true when the caller leads, or need not: an epoch of "" is a user's. A leader that slept through its lease must not
-- evict anybody, nor write over what the present one has said.
local function led(epoch_key, epoch)
  return epoch == "" or redis.call("GET", epoch_key) == epoch
end
