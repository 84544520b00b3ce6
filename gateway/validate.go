package gateway

// Validate returns, as ConfigErrors, what would keep Open from starting with
// the configuration here: what is wrong in it, a reference to a secret that is
// not there, a feature that this version does not have. It asks no source.
func (c *Config) Validate() error {
	_, err := prepare(c, nil)
	return err
}
