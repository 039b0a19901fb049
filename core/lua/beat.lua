-- consumer, then for each lease held: entry, conversation, lease, message id
-- → {0 lost | 1 | 2 asked to stop, …}
local states = {}
for i = 2, #ARGV, 4 do
  local entry, conversation = ARGV[i], ARGV[i + 1]
  local state = 0
  if is_mine(conversation, ARGV[i + 2], ARGV[i + 3]) then
    redis.call('XCLAIM', READY, GROUP, ARGV[1], 0, entry, 'JUSTID')
    state = redis.call('HEXISTS', K.run .. conversation, 'cancel') + 1
  end
  states[#states + 1] = state
end
return states
