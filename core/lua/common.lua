-- Shared by every script. The lines above this one are made by core/keys.py: T, K, GROUP, LATER.

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Names a place that holds this user's words, until it expires, so that forget finds it.
local function note_place(user, place, ttl_s)
  local key = K.mine .. user
  local now = tonumber(redis.call('TIME')[1])
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  redis.call('ZADD', key, now + ttl_s, place)
  if redis.call('TTL', key) < ttl_s then redis.call('EXPIRE', key, ttl_s) end
end

local function epoch_of(session)
  return tonumber(redis.call('GET', K.epoch .. session) or 0)
end

-- The facts as a flat list. Their lifetime slides: renewed once a hundredth of it has passed.
local function facts_of(session, channel, user, ttl_s)
  local key = K.mem .. session
  local left = redis.call('TTL', key)
  if left == -2 then return {} end
  if left < ttl_s * 0.99 then
    redis.call('EXPIRE', key, ttl_s)
    note_place(user, channel .. '|mem|' .. session, ttl_s)
  end
  return redis.call('HGETALL', key)
end

-- A run whose question the documents do not answer; its record holds the words, and may go first.
local function note_gap(run_id, ttl_s)
  local now = now_ms()
  redis.call('ZREMRANGEBYSCORE', K.gaps, '-inf', now - ttl_s * 1000)
  redis.call('ZADD', K.gaps, now, run_id)
  redis.call('EXPIRE', K.gaps, ttl_s)
end

local READY, ACT = K.ready, K.act

local function real(conversation)
  return redis.call('GET', K.alias .. conversation) or conversation
end

local function add_aliases(conversation, first, ttl_s)
  for i = first, #ARGV do redis.call('SET', K.alias .. ARGV[i], conversation, 'EX', ttl_s) end
end

-- A conversation is on the ready stream once, whoever waits for it or answers it.
local function announce(conversation)
  if redis.call('HEXISTS', ACT, conversation) == 0 then
    redis.call('HSET', ACT, conversation, redis.call('XADD', READY, '*', 'c', conversation))
  end
end

local function remove_entry(entry)
  redis.call('XACK', READY, GROUP, entry)
  redis.call('XDEL', READY, entry)
end

-- A new entry instead of this one: any worker that waits is woken by it.
local function put_back(conversation, entry)
  remove_entry(entry)
  redis.call('HDEL', ACT, conversation)
  redis.call('HDEL', K.run .. conversation, 'lease')
  announce(conversation)
end

local function header(item)
  return cjson.decode(item:sub(1, item:find('\n', 1, true) - 1))
end

local function owner(session)
  return session:match('^([^/]*)/(.*)$')
end

local function is_mine(conversation, lease, message_id)
  local run = redis.call('HMGET', K.run .. conversation, 'lease', 'message_id')
  return run[1] == lease and run[2] == message_id
end

-- Whether the run may still keep what it learned: nothing was forgotten since it began.
local function is_fresh(conversation)
  local run = redis.call('HMGET', K.run .. conversation, 'session', 'epoch', 'thread_epoch')
  local thread_epoch = redis.call('HGET', K.thread .. conversation, 'epoch') or '0'
  return run[1] and tonumber(run[2]) == epoch_of(run[1]) and run[3] == thread_epoch
end

-- The head of a conversation for the worker with this lease, with its run and all that the prompt
-- needs; when nothing waits, the conversation leaves the ready stream.
local function head(conversation, entry, lease, run_id, memory_ttl, run_ttl)
  local key = K.run .. conversation
  local item = redis.call('LINDEX', K.inbox .. conversation, 0)
  if not item then
    redis.call('DEL', key)
    redis.call('HDEL', ACT, conversation)
    remove_entry(entry)
    return { 'empty' }
  end
  local _, message_id, user_id, session = unpack(header(item))
  local channel, user = owner(session)
  if redis.call('HGET', key, 'message_id') ~= message_id then
    redis.call('DEL', key)
    redis.call('HSET', key, 'message_id', message_id, 'run_id', run_id, 'user', user_id,
      'session', session, 'phase', 'running', 'attempts', 0, 'elapsed_ms', 0,
      'epoch', epoch_of(session),
      'thread_epoch', redis.call('HGET', K.thread .. conversation, 'epoch') or '0')
  end
  redis.call('HSET', key, 'lease', lease)
  redis.call('HDEL', key, 'not_before')
  note_place(user, channel .. '|run|' .. conversation, run_ttl)
  local run = redis.call('HMGET', key, 'run_id', 'phase', 'attempts', 'elapsed_ms', 'epoch',
    'cancel', 'checkpoint', 'ref', 'final')
  local phase, final = run[2], run[9] or ''
  if phase == 'answered' and final == '' then
    final = redis.call('HGET', K.rec .. run[1], 'run') or ''
    -- Its record is gone, so there is nothing to deliver: it is answered anew.
    if final == '' then
      phase = 'running'
      redis.call('HSET', key, 'phase', phase)
    end
  end
  -- Few and long strings: a client takes as long for an element as for a kilobyte.
  local state = { run[1], phase, run[3], run[4], run[5], run[6] or '0' }
  return { 'item', conversation, entry, lease, item, table.concat(state, ' '),
    run[7] or '', run[8] or '', final,
    facts_of(session, channel, user, memory_ttl),
    '[' .. table.concat(redis.call('LRANGE', K.hist .. conversation, 0, -1), ',') .. ']',
    '[' .. table.concat(redis.call('LRANGE', K.notes .. conversation, 0, -1), ',') .. ']' }
end

-- The head is done: the next one, for the same worker.
local function next_head(conversation, entry, lease, run_id, memory_ttl, run_ttl)
  local session = redis.call('HGET', K.run .. conversation, 'session')
  local channel, user = owner(session)
  redis.call('LPOP', K.inbox .. conversation)
  redis.call('DEL', K.run .. conversation)
  redis.call('ZREM', K.mine .. user, channel .. '|run|' .. conversation)
  -- A lease is for one message: it starts anew.
  redis.call('XCLAIM', READY, GROUP, lease:match('^(.*)/'), 0, entry, 'JUSTID')
  return head(conversation, entry, lease, run_id, memory_ttl, run_ttl)
end

-- When a call that ended the head is made again because its reply was lost: what it would have
-- returned, or 'lost' when another worker has the conversation.
local function after_end(conversation, entry, lease, run_id, memory_ttl, run_ttl)
  if redis.call('HGET', K.run .. conversation, 'lease') == lease then
    return head(conversation, entry, lease, run_id, memory_ttl, run_ttl)
  end
  if redis.call('HEXISTS', ACT, conversation) == 0 then return { 'empty' } end
  return { 'lost' }
end

-- Leaves the entry pending with nobody, so that a sweep finds it when `wait_ms` have passed.
local function park(entry, wait_ms, claim_ms)
  local idle = math.max(0, claim_ms - wait_ms)
  redis.call('XCLAIM', READY, GROUP, LATER, 0, entry, 'IDLE', idle, 'JUSTID')
end
