package gateway

import "context"

// Validate returns, as ConfigErrors, what would keep Open from starting with
// the configuration here: what is wrong in it, a reference to a secret that is
// not there, a feature that this version does not have. It also reports what
// would keep a tool of a local document from being served. It asks no source.
func (c *Config) Validate() error {
	sources, err := prepare(c, nil)
	if err != nil {
		return err
	}
	s := specs{cfg: c}
	for i := range sources {
		if sources[i].check == nil {
			continue
		}
		if err := sources[i].check(context.Background()); err != nil {
			s.documentFaults(err, sources[i].document)
		}
	}
	return s.faults.sorted()
}
