package redisstream

import (
	"errors"
	"testing"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// What servers say of themselves, as far as it is looked at. Valkey names the version of Redis that it took over.
func TestServersThatServe(t *testing.T) {
	for _, c := range []struct {
		name, info string
		want       error
	}{
		{"Redis 7.0", "redis_version:7.0.15\r\nredis_mode:standalone\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n", nil},
		{"Valkey 8.1", "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n", nil},
		{"a limit of memory", "redis_version:7.0.15\r\nmaxmemory:1048576\r\nmaxmemory_policy:noeviction\r\n", nil},
		{"a policy without a limit", "redis_version:7.0.15\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n", nil},
		{"a limit with a policy that drops streams", "redis_version:7.0.15\r\nmaxmemory:1048576\r\nmaxmemory_policy:allkeys-lru\r\n", stream.ErrInvalid},
		{"Redis 6.2", "redis_version:6.2.14\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n", stream.ErrInvalid},
	} {
		if err := checkInfo(c.info); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}
