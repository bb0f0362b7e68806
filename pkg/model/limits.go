package model

// Limits is what the endpoint takes and gives in one call, as far as it is known.
func (c *Client) Limits() Limits { return Limits{Window: c.opt.Window, MaxOutput: c.opt.MaxTokens} }
