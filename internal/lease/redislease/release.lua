-- RELEASE: burn the token, leave the line, and hand on what was held.
-- KEYS fn, q, one lk for each slot, and if ARGV 7 is not 0, the record of a run
-- ARGV 1 token  2 member or ""  3 claim ms  4 inboxes  5 lock
--      6 for how many ms from the grant nobody else may have it
--      7 for how many ms to keep a record that the run is done, or 0  8 the run
-- Returns 1 if the token held a slot, now or when it was first released, else 0

local fn, q = KEYS[1], KEYS[2]
local token, member, claim, inboxes, lock = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local least, keep = tonumber(ARGV[6]), tonumber(ARGV[7])

if keep > 0 then last = #KEYS - 1 end
if member ~= '' then redis.call('ZREM', q, member) end

-- rest parks a slot that was held for too short a time, and reports whether it was.
local function rest(lk, since, now, who)
  local left = since + least - now
  if left < 1 then return false end
  redis.call('DEL', lk) -- first: see the end
  redis.call('SET', lk, '= ' .. who, 'PX', left)
  tell(q, inboxes, lock, who)
  return true
end

local released = false
for i = 3, last do
  local lk = KEYS[i]
  local value = redis.call('GET', lk)
  local held = mine(value, token)
  local parked = false
  if held then
    released = true
    if least > 0 or keep > 0 then
      local time = redis.call('TIME')
      local now = time[1] * 1000 + math.floor(time[2] / 1000)
      local who = public(value)
      local fence, since, name = string.match(who, '^(%S+) (%S+) (%S+)')
      since = math.min(tonumber(since), now)
      parked = rest(lk, since, now, who)
      if keep > 0 then
        local run = string.format('%s %s %.0f %.0f %s', ARGV[8], fence, now, now - since, name)
        redis.call('SET', KEYS[#KEYS], run, 'PX', keep)
        redis.call('HSET', fn, 'l', run)
      end
    end
  end
  if not parked and (held or (member ~= '' and value == '~' .. member)) then
    if not offer(lk, q, inboxes, lock, claim) then redis.call('DEL', lk) end
  end
end
released = remember(fn, token, released) -- last: out of memory, it can once some was freed
return released and 1 or 0
