// This program prints the facts about every flag and every feature gate of the cloud controller manager
// that k8s.io/cloud-provider builds: names, types, defaults, stages. No texts.
//
//go:generate sh -c "GOTOOLCHAIN=auto go run . > facts.json"
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/component-base/version/verflag"
)

type flag struct {
	Group      string `json:"group"`
	Name       string `json:"name"`
	Letter     string `json:"letter,omitempty"`
	Type       string `json:"type"`
	Default    string `json:"default"`
	Alone      string `json:"alone,omitempty"`
	Hidden     bool   `json:"hidden,omitempty"`
	Deprecated bool   `json:"deprecated,omitempty"`
}

type gate struct {
	Name    string `json:"name"`
	Default bool   `json:"default"`
	Stage   string `json:"stage,omitempty"`
	Locked  bool   `json:"locked,omitempty"`
}

type facts struct {
	Flags []flag `json:"flags"`
	Gates []gate `json:"gates"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	initialize := func(*config.CompletedConfig) cloudprovider.Interface { return nil }
	// Two sets of options: a flag can be defined once only.
	forCommand, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		return err
	}
	command := app.NewCloudControllerManagerCommand(forCommand, initialize, app.DefaultInitFuncConstructors,
		names.CCMControllerAliases(), cliflag.NamedFlagSets{}, wait.NeverStop)
	command.InitDefaultHelpFlag()

	// The command hands out its flags in one set; the groups have to be made once more.
	forGroups, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		return err
	}
	groups := forGroups.Flags(app.ControllerNames(app.DefaultInitFuncConstructors),
		app.ControllersDisabledByDefault.UnsortedList(), names.CCMControllerAliases(), nil, nil)
	global := groups.FlagSet("global")
	verflag.AddFlags(global)
	logsapi.AddFlags(logs.NewOptions(), global)
	globalflag.AddGlobalFlags(global, command.Name(), logs.SkipLoggingConfigurationFlags())

	var all []flag
	grouped := map[string]bool{}
	for _, group := range groups.Order {
		groups.FlagSets[group].VisitAll(func(f *pflag.Flag) {
			grouped[f.Name] = true
			all = append(all, flag{
				Group: group, Name: f.Name, Letter: f.Shorthand, Type: f.Value.Type(), Default: f.DefValue,
				Alone: f.NoOptDefVal, Hidden: f.Hidden, Deprecated: f.Deprecated != "",
			})
		})
	}
	command.Flags().VisitAll(func(f *pflag.Flag) {
		if !grouped[f.Name] {
			err = fmt.Errorf("--%s is in no group", f.Name)
		}
		delete(grouped, f.Name)
	})
	for name := range grouped {
		err = fmt.Errorf("--%s is not the command's", name)
	}
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(facts{Flags: all, Gates: gates()})
}

func gates() []gate {
	var all []gate
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		all = append(all, gate{
			Name: string(name), Default: spec.Default, Stage: string(spec.PreRelease), Locked: spec.LockToDefault,
		})
	}
	slices.SortFunc(all, func(a, b gate) int { return strings.Compare(a.Name, b.Name) })
	return all
}
