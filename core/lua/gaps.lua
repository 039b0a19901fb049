-- → {question, feedback or ''}, … of the runs noted as gaps whose records are still kept
local found = {}
for _, run_id in ipairs(redis.call('ZRANGE', K.gaps, 0, -1)) do
  local kept = redis.call('HMGET', K.rec .. run_id, 'question', 'feedback')
  if kept[1] then
    if kept[2] ~= 'good' then found[#found + 1] = { kept[1], kept[2] or '' } end
  else
    redis.call('ZREM', K.gaps, run_id)
  end
end
return found
