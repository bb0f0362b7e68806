package config

import (
	"errors"
	"io/fs"
	"os"

	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/execenv/trust"
	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
)

// The files of an organisation's rules. They are separate from team.yaml, which members of a team may write.
const (
	organisationFile = "/etc/agentteam/permissions.yaml"
	organisationEnv  = "AGENTTEAM_ORGANISATION" // names another beside it
)

// takeOrganisation reads the rules for all teams on this machine: the machine's, if there are any, before those of the
// file in the environment variable, which must exist.
func (c *Config) takeOrganisation() error {
	err := c.takeRules(organisationFile, fromDefault)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if named := c.sources.variable(organisationEnv); err == nil && named != "" {
		err = c.takeRules(named, "env "+organisationEnv)
	}
	return err
}

// takeRules adds the rules of one file.
func (c *Config) takeRules(file, origin string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return team.Errorf(team.InvalidArgument, "the permissions of the organisation: %w", err).WithHint("make the file readable for the user of this process; %s names one", organisationEnv)
	}
	var f trust.Form
	if _, err := (strictyaml.Format{File: file, Kind: "file of permissions"}).Decode(data, &f.Permissions); err != nil {
		return err
	}
	policy, _ := f.Policy()
	_, never, err := permission.Parse(policy.Permissions)
	if err != nil {
		return team.Errorf(team.InvalidArgument, "%s: %w", file, err)
	}
	for _, warning := range never {
		c.neverMatch = append(c.neverMatch, file+": "+warning)
	}
	c.Organisation = c.Organisation.And(policy.Permissions)
	c.origins = append(c.origins, Origin{Name: "organisation", Value: file, Origin: origin})
	return nil
}
