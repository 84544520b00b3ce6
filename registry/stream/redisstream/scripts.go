package redisstream

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// script is a step that Redis takes as one. Each takes the keys of one stream, see [keys]: KEYS[1] the stream, KEYS[2]
// its state, KEYS[3] what was given back.
type script struct{ text, sha string }

func newScript(parts ...string) script {
	text := strings.Join(parts, "")
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

type scripts struct {
	open, add, ack, extend, giveBack, sweep, take, leave, remove, size script
}

func newScripts() *scripts {
	return &scripts{
		open:     newScript(openScript),
		add:      newScript(clockFunction, reclaimFunction, addScript),
		ack:      newScript(ackScript),
		extend:   newScript(extendScript),
		giveBack: newScript(clockFunction, giveBackScript),
		sweep:    newScript(clockFunction, sweepScript),
		take:     newScript(takeScript),
		leave:    newScript(leaveScript),
		remove:   newScript(removeScript),
		size:     newScript(sizeScript),
	}
}

// load makes the scripts known to Redis by their hashes.
func (s *scripts) load(ctx context.Context, conn *redis.Conn) error {
	_, err := conn.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, script := range []script{s.open, s.add, s.ack, s.extend, s.giveBack, s.sweep, s.take, s.leave, s.remove, s.size} {
			p.ScriptLoad(ctx, script.text)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("load the scripts: %w", denied([]any{"SCRIPT", "LOAD"}, err)) // It is told from an answer on the connection.
	}
	return nil
}

// call makes a command of a script.
func (s script) call(k keys, args ...any) *command {
	head := []any{"EVALSHA", s.sha, 3, k.stream, k.state, k.later}
	return &command{args: append(head, args...), text: s.text, waits: true}
}

// Bounds of the work of one script.
const (
	scanned   = 1000 // entries of one consumer that a sweep looks at
	maxGraves = 16   // events that Dead has at once
)

// clockFunction gives the server's time in milliseconds.
const clockFunction = `
local function clock()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end
local function whole(n) return string.format('%.0f', n) end
`

// openScript makes a sink where it is not there. ARGV: its name, its lease in ms or 0 for what the sink has, the lease of a
// new one, and the ms after which a short-lived stream vanishes, 0 for one that stays.
// It returns the sink's lease, or, where the stream has another sink or another lease, what it has as text.
const openScript = `
local name, lease, fresh, ttl = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local there = false
if redis.call('EXISTS', KEYS[1]) == 1 then
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    if group[2] ~= name then return 'its sink is ' .. group[2] end
    there = true
  end
end
local has = tonumber(redis.call('HGET', KEYS[2], 'lease') or 0)
if there and has > 0 then
  if lease > 0 and lease ~= has then return 'its lease is ' .. has .. 'ms' end
  lease = has
elseif lease == 0 then
  lease = fresh
end
if not there then
  redis.call('XGROUP', 'CREATE', KEYS[1], name, '0', 'MKSTREAM')
  redis.call('DEL', KEYS[3])
end
redis.call('HSET', KEYS[2], 'lease', lease)
if ttl > 0 then
  ttl = tonumber(redis.call('HGET', KEYS[2], 'ttl') or ttl)
  redis.call('PEXPIRE', KEYS[1], ttl)
  redis.call('PEXPIRE', KEYS[2], ttl)
end
return lease
`

// reclaimFunction removes what consumers that are not ours acknowledged and left behind.
const reclaimFunction = `
local function reclaim(key)
  local groups = redis.call('XINFO', 'GROUPS', key)
  if #groups ~= 1 then return end
  local first, last
  local group = groups[1]
  for i = 1, #group, 2 do
    if group[i] == 'last-delivered-id' then last = group[i + 1] end
  end
  local pending = redis.call('XPENDING', key, group[2])
  if pending[1] > 0 then
    redis.call('XTRIM', key, 'MINID', '=', pending[2])
  else
    redis.call('XTRIM', key, 'MINID', '=', last)
    redis.call('XDEL', key, last)
  end
end
`

// addScript adds an entry where there is room. ARGV: the event's name, its payload, the ms after which it vanishes or 0, how
// many events a stream holds for which Redis has no bound, and the note beside the payload or nothing. It returns the entry's ID, or how many events there are
// when there is no room.
const addScript = `
local ttl, most = tonumber(ARGV[3]), tonumber(ARGV[4])
local held = redis.call('XLEN', KEYS[1])
if ttl > 0 then
  if held > 0 then
    redis.call('XTRIM', KEYS[1], 'MINID', '=', whole(clock() - ttl))
    held = redis.call('XLEN', KEYS[1])
  end
else
  most = tonumber(redis.call('HGET', KEYS[2], 'events') or most)
  if held >= most then
    pcall(reclaim, KEYS[1]) -- Who may only add may not remove.
    held = redis.call('XLEN', KEYS[1])
  end
end
if held >= most then return held end
local id
if ARGV[5] ~= '' then
  id = redis.call('XADD', KEYS[1], '*', 'n', ARGV[1], 'p', ARGV[2], 'note', ARGV[5])
else
  id = redis.call('XADD', KEYS[1], '*', 'n', ARGV[1], 'p', ARGV[2])
end
if ttl > 0 then
  redis.call('HSET', KEYS[2], 'ttl', ttl)
  redis.call('PEXPIRE', KEYS[1], ttl)
  redis.call('PEXPIRE', KEYS[2], ttl)
end
return id
`

// ackScript removes an entry. ARGV: the sink, the entry.
const ackScript = `
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
return redis.call('XDEL', KEYS[1], ARGV[2])
`

// extendScript starts a lease anew. ARGV: the sink, the consumer, the entry. It returns 0 when another has the entry.
const extendScript = `
local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1)
if #pending == 0 or pending[1][2] ~= ARGV[2] then return 0 end
return #redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[3], 'JUSTID')
`

// giveBackScript gives entries back that a consumer has, to the consumer "returned", which never reads. ARGV: the sink, the consumer, the delay in ms, the channel on
// which the other workers are told, 1 for entries that nobody has seen, whose delivery then does not count, and the
// entries. It returns how many entries went back.
const giveBackScript = `
local due, back = clock() + tonumber(ARGV[3]), 0
for i = 6, #ARGV do
  local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1)
  if #pending == 1 and pending[1][2] == ARGV[2] then
    local count = math.max(pending[1][4] - tonumber(ARGV[5]), 0)
    redis.call('XCLAIM', KEYS[1], ARGV[1], 'returned', 0, ARGV[i], 'RETRYCOUNT', count, 'JUSTID')
    redis.call('ZADD', KEYS[3], whole(due), ARGV[i])
    back = back + 1
  end
end
if back > 0 then
  local left = redis.call('PTTL', KEYS[1])
  if left > 0 then redis.call('PEXPIRE', KEYS[3], left) end
  redis.call('PUBLISH', ARGV[4], ARGV[3])
end
return back
`

// sweepScript takes over what may be delivered again: what was given back and is due, and what a consumer let its lease end
// on. It also removes consumers that are gone. ARGV: the sink, the consumer that takes over, the lease in ms, how many
// entries to take at most, how often an entry is delivered at most or 0, how many entries to bury at most, how many entries of a
// consumer to look at, the ms after which a consumer that has nothing is gone, and the ms of a short-lived stream or 0.
// It returns in how many ms the next entry may be due, 1 if something is due that was not taken, and each entry taken: its
// ID, its deliveries, its fields, and 1 if it was delivered as often as it may.
const sweepScript = `
local group, me, lease, room = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local most, graves, scanned, gone, ttl = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local now, soonest, owed, out = clock(), lease, 0, {}
if ttl > 0 then
  ttl = tonumber(redis.call('HGET', KEYS[2], 'ttl') or ttl)
  redis.call('XTRIM', KEYS[1], 'MINID', '=', whole(now - ttl))
  for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], ttl) end
end

local function claim(id, count)
  local dead = most > 0 and count >= most
  if dead and graves == 0 or not dead and room == 0 then
    owed = 1
    return false
  end
  count = count + 1
  local entries = redis.call('XCLAIM', KEYS[1], group, me, 0, id, 'RETRYCOUNT', count)
  if #entries == 0 or not entries[1] then return true end
  if dead then graves = graves - 1 else room = room - 1 end
  out[#out + 1] = {id, count, entries[1][2], dead and 1 or 0}
  return true
end

for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', whole(now), 'LIMIT', 0, room + graves)) do
  local pending = redis.call('XPENDING', KEYS[1], group, id, id, 1)
  if #pending == 0 or pending[1][2] ~= 'returned' or claim(id, pending[1][4]) then redis.call('ZREM', KEYS[3], id) end
end
local next = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
if #next == 2 then
  local due = tonumber(next[2]) - now
  if due > 0 then soonest = math.min(soonest, due) else owed = 1 end
end

for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], group)) do
  local is = {}
  for i = 1, #consumer, 2 do is[consumer[i]] = consumer[i + 1] end
  if is.pending == 0 and is.idle > gone and is.name ~= me and is.name ~= 'returned' then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], group, is.name)
  elseif is.pending > 0 then
    local pending = redis.call('XPENDING', KEYS[1], group, '-', '+', scanned, is.name)
    for _, entry in ipairs(pending) do
      if is.name == 'returned' and redis.call('ZSCORE', KEYS[3], entry[1]) then
        -- waits for its time
      elseif entry[3] >= lease then
        claim(entry[1], entry[4])
      else
        soonest = math.min(soonest, lease - entry[3])
      end
    end
    if #pending == scanned then soonest = math.min(soonest, lease / 4) end
  end
end
return {math.max(math.floor(soonest), 1), owed, out}
`

// takeScript delivers entries again to the consumer that has them already. ARGV: the sink, the consumer, the entries. It
// returns each entry as sweepScript does.
const takeScript = `
local out = {}
for i = 3, #ARGV do
  local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1)
  if #pending == 1 and pending[1][2] == ARGV[2] then
    local entries = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'RETRYCOUNT', pending[1][4])
    if #entries == 1 and entries[1] then out[#out + 1] = {ARGV[i], pending[1][4], entries[1][2], 0} end
  end
end
return out
`

// leaveScript removes a consumer that has nothing. ARGV: the sink, the consumer.
const leaveScript = `
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) == 0 then
  redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
end
return 1
`

// removeScript forgets a sink. ARGV: its name. It returns 0 when the stream has no such sink.
const removeScript = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local was = redis.call('XGROUP', 'DESTROY', KEYS[1], ARGV[1])
if was == 1 then
  redis.call('HDEL', KEYS[2], 'lease')
  redis.call('DEL', KEYS[3])
end
return was
`

// sizeScript counts the entries of a stream: all, and those that were delivered.
const sizeScript = `
local pending = 0
if redis.call('EXISTS', KEYS[1]) == 1 then
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    pending = pending + redis.call('XPENDING', KEYS[1], group[2])[1]
  end
end
return {redis.call('XLEN', KEYS[1]), pending}
`
