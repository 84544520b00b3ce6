package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/connect"
)

// Workers is about tools that run in worker processes, which are reached over
// streams.
type Workers struct {
	// Enabled runs a stream server in this process.
	Enabled bool `yaml:"enabled" doc:"Run a stream server in this process, which workers connect to."`
	// Listen is DefaultWorkersListen when empty.
	Listen string `yaml:"listen" doc:"Address at which workers reach that server, host:port; 127.0.0.1:7712 when absent."`
	// Sync is grouped when empty.
	Sync string `yaml:"sync" rule:"enum=grouped|every|later" doc:"When that server has what it accepts on disk: grouped and every before it answers, later some seconds after. With later, so are the records of calls; that may be said of a server elsewhere too."`
	URL  string `yaml:"url" doc:"Address of a stream server elsewhere, in place of one in this process: nats://, tls://, redis:// or rediss://."`

	Token           string `yaml:"token" doc:"Token of the stream server; may hold ${NAME} or be file:PATH. That in this process makes one when absent."`
	User            string `yaml:"user" doc:"User at the stream server elsewhere."`
	Password        string `yaml:"password" doc:"Password of that user; may hold ${NAME} or be file:PATH."`
	CredentialsFile string `yaml:"credentials_file" doc:"File with a JWT and its key, for a NATS server elsewhere."`
	NKeyFile        string `yaml:"nkey_file" doc:"File with the seed of an nkey, for a NATS server elsewhere."`
	CAFile          string `yaml:"ca_file" doc:"Certificates of those who may sign that of the stream server elsewhere."`
	CertFile        string `yaml:"cert_file" doc:"Certificate of the stream server in this process, whose workers then connect by tls://; or that by which this gateway shows itself to one elsewhere."`
	KeyFile         string `yaml:"key_file" doc:"Key of that certificate."`

	Namespace string          `yaml:"namespace" doc:"Keeps gateways apart that share a stream server and no data_dir; their workers name the same."`
	Toolsets  []WorkerToolset `yaml:"toolsets" doc:"The only toolsets that workers may serve; every one when absent."`

	Wait           bool     `yaml:"wait" doc:"Calls wait for a worker when none is up, until their time is over, and do not fail at once."`
	MaxWaiting     int      `yaml:"max_waiting" rule:"min=1" doc:"Most calls of one toolset that wait for a worker; 10000 when absent."`
	MaxOutstanding int      `yaml:"max_outstanding" rule:"min=1" doc:"Most calls of one toolset that have no answer yet; a further one is refused as overloaded."`
	MaxCallTime    Duration `yaml:"max_call_time" doc:"How long a call may take that has no time limit of its own, such as 10m."`
	Retention      Duration `yaml:"retention" doc:"How long the record of a call is kept after its end, such as 24h."`
	PingInterval   Duration `yaml:"ping_interval" doc:"Time between two pings of a worker; 10s when absent."`
	MissedPings    int      `yaml:"missed_pings" rule:"min=1" doc:"Pings in a row without an answer after which a worker is down; 3 when absent."`
	StaleAfter     Duration `yaml:"stale_after" doc:"Age of its last answer from which a worker is down in any case; 40s when absent."`
	DrainTimeout   Duration `yaml:"drain_timeout" doc:"How long workers with another contract wait for the calls of those before them."`
}

// WorkerToolset says who may serve a toolset, and who sees its tools.
type WorkerToolset struct {
	Name        string   `yaml:"name" rule:"required,source" doc:"Name of the toolset."`
	Key         string   `yaml:"key" doc:"What its workers must hold; may hold ${NAME} or be file:PATH. Any worker when absent."`
	PreviousKey string   `yaml:"previous_key" doc:"A key that is taken beside it, while workers change from one to the other."`
	Tenants     []string `yaml:"tenants" doc:"The only tenants that see its tools."`
	AuthScopes  []string `yaml:"auth_scopes" doc:"Scopes that a caller must hold as well."`
	Prefix      string   `yaml:"prefix" rule:"source" doc:"Put before the names of its tools."`
}

// wanted reports whether workers are to be reached.
func (c *Workers) wanted() bool { return c != nil && (c.Enabled || c.URL != "") }

// prefixes are what the names of workers' tools can begin with; none means anything.
func (c *Workers) prefixes() []string {
	var out []string
	for _, t := range c.Toolsets {
		if t.Prefix == "" {
			return nil
		}
		out = append(out, t.Prefix)
	}
	return out
}

// fixed returns the settings that are used when the gateway is opened.
func (c *Workers) fixed() any {
	if c == nil {
		return nil
	}
	fixed := *c
	fixed.Toolsets = nil
	return fixed
}

// secrets returns what must be references, by their keys.
func (c *Workers) secrets() map[string]string {
	out := map[string]string{"token": c.Token, "password": c.Password}
	for i, t := range c.Toolsets {
		out[fmt.Sprintf("toolsets[%d].key", i)] = t.Key
		out[fmt.Sprintf("toolsets[%d].previous_key", i)] = t.PreviousKey
	}
	return out
}

func (c *checker) workers(w *Workers) {
	if w == nil {
		return
	}
	for i, t := range w.Toolsets {
		if t.PreviousKey != "" && t.Key == "" {
			c.fault(fmt.Sprintf("workers.toolsets[%d].previous_key", i), "is beside no key, so that any worker is admitted", "key beside it")
		}
	}
	c.unique("workers.toolsets", len(w.Toolsets), func(i int) string { return w.Toolsets[i].Name })
	if w.Enabled && w.URL != "" {
		c.fault("workers.url", "names a stream server elsewhere, and enabled runs one in this process", "one of the two")
	}
	for key, value := range w.secrets() {
		if value != "" && !isReference(value) {
			c.fault("workers."+key, "is the secret itself", "a reference to it: ${NAME} or file:PATH")
		}
	}
	if !w.wanted() {
		return
	}
	c.workersTimes(w)
	for _, s := range c.cfg.Tools.sourceNames() {
		if s.name == string(registry.SourceID) {
			c.fault(s.path+".name", fmt.Sprintf("%q is the name of the source of what workers serve", s.name), "another name")
		}
	}
	if w.URL != "" {
		c.workersElsewhere(w)
		return
	}
	c.workersHere(w)
}

// workersTimes checks what the times of pings and a namespace say together.
func (c *checker) workersTimes(w *Workers) {
	ping, stale := time.Duration(w.PingInterval), time.Duration(w.StaleAfter)
	if ping != 0 && (ping < registry.MinPingInterval || ping > registry.MaxPingInterval) {
		c.fault("workers.ping_interval", "is out of bounds", fmt.Sprintf("%s to %s", registry.MinPingInterval, registry.MaxPingInterval))
	}
	if stale != 0 && stale <= cmp.Or(ping, registry.DefaultPingInterval) {
		c.fault("workers.stale_after", "is not longer than the time between two pings, so that each worker would be down", "more than ping_interval, as a rule four times that")
	}
	if w.Namespace != "" && registry.CheckNamespace(w.Namespace) != nil {
		c.fault("workers.namespace", "is too long", "a short name")
	}
	for i, t := range w.Toolsets {
		at := fmt.Sprintf("workers.toolsets[%d]", i)
		if slices.Contains(t.Tenants, "") {
			c.fault(at+".tenants", "holds an empty name", "names of tenants, or no tenants for all of them")
		}
		if slices.Contains(t.AuthScopes, "") {
			c.fault(at+".auth_scopes", "holds an empty scope", "scopes, or no auth_scopes")
		}
	}
}

// workersHere checks the settings of the server in this process.
func (c *checker) workersHere(w *Workers) {
	for _, k := range []struct{ key, value string }{{"user", w.User}, {"password", w.Password}, {"credentials_file", w.CredentialsFile},
		{"nkey_file", w.NKeyFile}, {"ca_file", w.CAFile}} {
		if k.value != "" {
			c.fault("workers."+k.key, "is for a stream server elsewhere, whose address url gives", "no "+k.key)
		}
	}
	if (w.CertFile == "") != (w.KeyFile == "") {
		c.fault("workers.cert_file", "needs key_file beside it", "both or none")
	}
	if w.Listen == "" || w.Listen == "none" {
		return
	}
	if _, port, err := net.SplitHostPort(w.Listen); err != nil || !isPort(port) {
		c.fault("workers.listen", "is not an address", "host:port, such as "+DefaultWorkersListen+", or none")
	} else if !loopback(w.Listen) && w.CertFile == "" {
		c.fault("workers.listen", "is an address that other machines reach, and nothing that is sent there would be encrypted",
			"cert_file and key_file, or an address of this machine alone, such as "+DefaultWorkersListen)
	}
}

func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// workers notes which secrets and files are missing that the workers' settings name.
func (s *specs) workers(w *Workers) {
	if !w.wanted() {
		return
	}
	_ = w.admission(s)
	address, login := w.dial(s)
	if hasReference(w.URL) && address != "" {
		if err := connect.Check(address, login); err != nil {
			s.faults = append(s.faults, s.cfg.faultAt("workers.url", strings.TrimPrefix(err.Error(), stream.ErrInvalid.Error()+": "), ""))
		}
	}
	for _, f := range []struct{ key, file string }{{"credentials_file", login.CredentialsFile}, {"nkey_file", login.NKeyFile},
		{"ca_file", login.CAFile}, {"cert_file", login.CertFile}, {"key_file", login.KeyFile}} {
		if f.file == "" {
			continue
		}
		if _, err := os.Stat(f.file); err != nil {
			s.faults = append(s.faults, s.cfg.faultAt("workers."+f.key, "cannot be read: "+fileReason(err), "a file that is there when the gateway starts"))
		}
	}
}

// fileReason is what the system says of a file, without its name.
func fileReason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// workersElsewhere checks how a server elsewhere is reached.
func (c *checker) workersElsewhere(w *Workers) {
	if w.Listen != "" {
		c.fault("workers.listen", "is for the stream server in this process, which enabled runs", "no listen")
	}
	if w.Sync == "every" {
		c.fault("workers.sync", "is every, which is for the stream server in this process, and one elsewhere has settings of its own",
			"grouped or later, which say when the records of calls are on disk")
	}
	if hasReference(w.URL) {
		return // it is checked when the gateway is opened
	}
	login := connect.Options{Token: w.Token, CredentialsFile: w.CredentialsFile, NKeyFile: w.NKeyFile}
	if err := connect.Check(w.URL, &login); err != nil {
		c.fault("workers.url", strings.TrimPrefix(err.Error(), stream.ErrInvalid.Error()+": "), "")
	}
	if hasLogin(w.URL) {
		c.fault("workers.url", "holds a secret", "user, password or token beside it, or ${NAME} in its place")
	}
}

// hasLogin reports whether a URL, or one of several, holds a user.
func hasLogin(url string) bool { return withoutLogin(url) != url }

// withoutLogin returns a URL, or several, without users and passwords.
func withoutLogin(urls string) string {
	parts := strings.Split(urls, ",")
	for i, part := range parts {
		scheme, rest, found := strings.Cut(part, "://")
		if !found {
			scheme, rest = "", part
		} else {
			scheme += "://"
		}
		host, path, slash := strings.Cut(rest, "/")
		host = host[strings.LastIndexByte(host, '@')+1:]
		if slash {
			host += "/" + path
		}
		parts[i] = scheme + host
	}
	return strings.Join(parts, ",")
}
