-- ACQUIRE: take a free slot, or the place in line.
-- KEYS fn, q, one lk for each slot
-- ARGV 1 token  2 ttl ms  3 "<name> <uid> <address>"  4 fence hint  5 member or ""
--      6 skip   7 claim ms  8 kind  9 first slot  10 reclaim: 1 or 0  11 inboxes  12 lock
--      13 the fence of a dead holder's lease, or 0
-- Returns {1, slot, fence, waiting, from}               granted; from 1: reclaimed, 2: the dead's
--         {0, left ms, rank, waiting, fence, holder, joined}   held
--         {-1} token burned   {-2, kind} name in use as another kind

local fn, q = KEYS[1], KEYS[2]
local token, ttl, who, member = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[5]
local skip, claim, kind, inboxes, lock = tonumber(ARGV[6]), ARGV[7], ARGV[8], ARGV[11], ARGV[12]
local slots = #KEYS - 2

if not ttl or ttl < 1 then return redis.error_reply('INVALID ttl must be at least 1 ms') end

local known = redis.call('HMGET', fn, 'f', 'x', 'k', 'd', 'r')
if known[2] and string.find(known[2], token, 1, true) then return {-1} end
if known[3] and known[3] ~= kind then return {-2, known[3]} end

local values = {}
for slot = 0, slots - 1 do values[slot] = redis.call('GET', KEYS[slot + 3]) end

-- Already ours: the reply was lost. Same slot, same fence, and never a shorter lease.
for slot = 0, slots - 1 do
  if mine(values[slot], token) then
    local fence = string.match(values[slot], '^%S+ (%S+)')
    if tonumber(fence) <= tonumber(known[5] or 0) then return {-1} end -- revoked
    local lk = KEYS[slot + 3]
    if redis.call('PTTL', lk) < ttl then redis.call('PEXPIRE', lk, ttl) end
    return {1, slot, fence, redis.call('ZCARD', q), 0}
  end
end

-- grant takes a slot; alone says that nobody is known to be in line.
local function grant(slot, from, alone)
  local time = redis.call('TIME')
  local fence = math.max(tonumber(known[1] or 0) or 0, time[1] * 1e6 + time[2], tonumber(ARGV[4])) + 1
  if fence >= 2^53 then return redis.error_reply('INVALID fence out of range') end
  fence = string.format('%.0f', fence)
  local rest = fence .. ' ' .. string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)) .. ' ' .. who
  redis.call('SET', KEYS[slot + 3], token .. ' ' .. rest, 'PX', ttl)
  local day = math.floor(time[1] / 86400)
  if known[3] and tonumber(known[4]) == day then
    redis.call('HSET', fn, 'f', fence)
  else -- once a day is often enough for what lives on for thirty
    redis.call('HSET', fn, 'f', fence, 'k', kind, 'd', day)
    redis.call('PEXPIRE', fn, 30 * DAY)
  end
  if slots > 1 then
    redis.call('HSET', fn, 'n', math.max(slots, tonumber(redis.call('HGET', fn, 'n') or 0)))
  end
  if alone then return {1, slot, fence, 0, from} end
  if member ~= '' then redis.call('ZREM', q, member) end
  values[slot] = token
  for other = 0, slots - 1 do -- those that came free with it go to the next in line at once
    if not values[other] then offer(KEYS[other + 3], q, inboxes, lock, claim) end
  end
  tell(q, inboxes, lock, rest)
  return {1, slot, fence, redis.call('ZCARD', q), from}
end

-- Kept for us, or our dead predecessor's, or that of one known to be dead.
local uid, address = string.match(who, '^%S+ (%S+) (%S+)$')
for slot = 0, slots - 1 do
  local value = values[slot]
  if value and member ~= '' and value == '~' .. member then return grant(slot, 0) end
  if value and ARGV[10] == '1' and uid ~= '-' and address ~= '-' then
    local huid, haddress = string.match(value, '^%x+ %S+ %S+ %S+ (%S+) (%S+)$')
    if huid == uid and haddress == address then return grant(slot, 1) end
  end
  if value and ARGV[13] ~= '0' and string.match(value, '^%x+ (%S+)') == ARGV[13] then
    return grant(slot, 2)
  end
end

-- Free: for the first in line, which may be us.
for i = 0, slots - 1 do
  local slot = (tonumber(ARGV[9]) + i) % slots
  if not values[slot] then
    while skip > 0 do
      skip = skip - 1
      local front = redis.call('ZRANGE', q, 0, 0)[1]
      if not front or front == member then break end
      redis.call('ZREM', q, front)
    end
    local front = redis.call('ZRANGE', q, 0, 0)[1]
    while front and front ~= member and not listening(inboxes, front) do
      redis.call('ZREM', q, front)
      front = redis.call('ZRANGE', q, 0, 0)[1]
    end
    if not front or front == member then return grant(slot, 0, not front) end
    local kept = offer(KEYS[slot + 3], q, inboxes, lock, claim)
    if not kept then return grant(slot, 0) end
    values[slot] = '~' .. kept
  end
end

-- Held. Join the line, and drop those right ahead that have gone.
local rank, joined = -1, 0
if member ~= '' then
  local time = redis.call('TIME')
  joined = redis.call('ZADD', q, 'NX', string.format('%.0f', time[1] * 1e6 + time[2]), member)
  redis.call('PEXPIRE', q, math.max(DAY, 2 * ttl))
  rank = redis.call('ZRANK', q, member)
  while rank > 0 do
    local ahead = redis.call('ZRANGE', q, rank - 1, rank - 1)[1]
    if listening(inboxes, ahead) then break end
    redis.call('ZREM', q, ahead)
    rank = rank - 1
  end
end
local holder = ''
for slot = 0, slots - 1 do
  if holder == '' then holder = public(values[slot]) end
end
return {0, soonest(), rank, redis.call('ZCARD', q), known[1] or '0', holder, joined}
