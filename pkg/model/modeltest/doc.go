// Package modeltest provides a faulty model endpoint for tests: it plays the faults of one catalogue, request by
// request, before a working endpoint.
//
// The catalogue has the advice that the model client must give for each fault, so that the client, an agent and a whole
// team are tested against the same one. Package rehearsal provides the working endpoint.
package modeltest
