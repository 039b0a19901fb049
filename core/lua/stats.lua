-- → {depth, accepted at of the oldest message in ms or 0, now in ms, in flight, dead}
local depth, oldest, in_flight = 0, 0, 0
for _, conversation in ipairs(redis.call('HKEYS', ACT)) do
  local item = redis.call('LINDEX', K.inbox .. conversation, 0)
  if item then
    depth = depth + redis.call('LLEN', K.inbox .. conversation)
    in_flight = in_flight + redis.call('HEXISTS', K.run .. conversation, 'lease')
    local at = header(item)[1]
    if oldest == 0 or at < oldest then oldest = at end
  end
end
return { depth, oldest, now_ms(), in_flight, redis.call('HLEN', K.dead) }
