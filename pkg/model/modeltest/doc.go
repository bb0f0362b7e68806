// Package modeltest is a model endpoint for tests that does wrong what endpoints do
// wrong: it plays the faults of one catalogue, request by request, before an endpoint
// that answers well.
//
// The catalogue says what the model client is to advise for each fault, so that the
// client, an agent and a whole team are tested against the same one. What an endpoint
// answers otherwise is not its business: see package rehearsal.
package modeltest
