-- Prelude of every script. A slot's key holds one of:
--   "<token> <fence> <since> <name> <uid> <address>"   a lease ("-": field empty)
--   "= <fence> <since> <name> <uid> <address>"         released, and kept from all for a while
--   "~<member>"                                        kept for the next in line
-- and always expires. A member is "<instance>#<n>"; its inbox is the channel
-- "<inboxes><instance>", on which a message begins with the member and the lock.

local DAY = 86400000
local HEADS = 4   -- how many in line are told their turn (lease.Heads)
local BURNED = 8  -- how many released tokens a lock remembers

local last = #KEYS -- of the slots' keys, which begin with the third

local function mine(value, token)
  return value and string.sub(value, 1, #token + 1) == token .. ' '
end

-- public is the value without its token: all that others may see.
local function public(value)
  return value and string.match(value, '^[%x=]+ (%S+ %S+ %S+ %S+ %S+)$') or ''
end

-- remember keeps a token for which a release was sent, so that a request with it that
-- comes late is refused, and whether it held a slot then ("+", else " "). It returns that:
-- a release repeated says the same again.
local function remember(fn, token, held)
  local known = redis.call('HMGET', fn, 'x', 'd')
  local x = known[1] or ''
  local _, at = string.find(x, token, 1, true)
  if at then return string.sub(x, at + 1, at + 1) == '+' end
  x = token .. (held and '+' or ' ') .. x
  redis.call('HSET', fn, 'x', string.sub(x, 1, BURNED * (#token + 1)))
  if not known[2] then redis.call('PEXPIRE', fn, 30 * DAY) end -- else ACQUIRE sees to that
  return held
end

local function inbox(inboxes, member)
  return inboxes .. string.match(member, '^[^#]*')
end

-- sharded reports whether inboxes are channels of the lock's own slot, which a cluster does
-- not pass on to all its nodes. Servers have them since they have this variable (7.0).
local function sharded(inboxes)
  return redis.REDIS_VERSION_NUM and string.find(inboxes, '{', 1, true)
end

-- listening reports whether anybody reads the member's inbox.
local function listening(inboxes, member)
  local count = sharded(inboxes) and 'SHARDNUMSUB' or 'NUMSUB'
  return redis.call('PUBSUB', count, inbox(inboxes, member))[2] > 0
end

-- publish sends a message to the member's inbox, and returns how many have read it.
local function publish(inboxes, member, text)
  return redis.call(sharded(inboxes) and 'SPUBLISH' or 'PUBLISH', inbox(inboxes, member), member .. ' ' .. text)
end

-- soonest returns in how many ms a slot comes free: 0 if one is, -1 if none ever does.
local function soonest()
  local least = -1
  for i = 3, last do
    local left = redis.call('PTTL', KEYS[i])
    if left == -2 then return 0 end
    if left >= 0 and (least < 0 or left < least) then least = left end
  end
  return least
end

-- tell informs the head of the line of its ranks, and of what it waits for.
local function tell(q, inboxes, lock, rest)
  local waiting = redis.call('ZCARD', q)
  if waiting == 0 then return end
  local left = soonest()
  for i, member in ipairs(redis.call('ZRANGE', q, 0, HEADS - 1)) do
    publish(inboxes, member, lock .. ' in ' .. (i - 1) .. ' ' .. left .. ' ' .. waiting .. ' ' .. rest)
  end
end

-- offer keeps a slot for the first in line that listens, and says so to it. It returns
-- nil when there is none. Those that have gone are dropped on the way: each paid for its
-- step when it joined.
local function offer(lk, q, inboxes, lock, claim)
  while true do
    local front = redis.call('ZRANGE', q, 0, 0)[1]
    if not front then return nil end
    redis.call('ZREM', q, front)
    if publish(inboxes, front, lock .. ' go') > 0 then
      redis.call('SET', lk, '~' .. front, 'PX', claim)
      tell(q, inboxes, lock, '')
      return front
    end
  end
end
