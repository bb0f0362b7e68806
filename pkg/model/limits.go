package model

// Limits is what the endpoint takes and gives in one call.
func (c *Client) Limits(string) Limits {
	return Limits{Window: c.opt.Window, MaxOutput: c.opt.MaxTokens}
}
