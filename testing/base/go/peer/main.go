// This program is a cloud controller manager as k8s.io/cloud-provider makes one, for a cloud called "reference". It runs
// beside Bowline in tests: what it does to Nodes and Services is what every Go manager does.
//
// --cloud-config names a file with the names of the cloud's instances, one a line. It is read at every question, so
// that a test takes an instance away by writing it anew. Load balancers are kept in memory. Each call of the cloud is a
// line on standard error: "cloud:", the method, the object.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
)

const scheme = "reference://"

type cloud struct {
	file      string
	lock      sync.Mutex
	balancers map[string]string
}

func main() {
	defaults, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	build := func(config *config.CompletedConfig) cloudprovider.Interface {
		file := config.ComponentConfig.KubeCloudShared.CloudProvider.CloudConfigFile
		return &cloud{file: file, balancers: map[string]string{}}
	}
	command := app.NewCloudControllerManagerCommand(
		defaults, build, app.DefaultInitFuncConstructors, names.CCMControllerAliases(), cliflag.NamedFlagSets{}, wait.NeverStop)
	os.Exit(cli.Run(command))
}

func init() {
	cloudprovider.RegisterCloudProvider("reference", func(io.Reader) (cloudprovider.Interface, error) {
		return nil, fmt.Errorf("made by main")
	})
}

func (c *cloud) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {}
func (c *cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool)                  { return c, true }
func (c *cloud) Instances() (cloudprovider.Instances, bool)                        { return nil, false }
func (c *cloud) InstancesV2() (cloudprovider.InstancesV2, bool)                    { return c, true }
func (c *cloud) Zones() (cloudprovider.Zones, bool)                                { return nil, false }
func (c *cloud) Clusters() (cloudprovider.Clusters, bool)                          { return nil, false }
func (c *cloud) Routes() (cloudprovider.Routes, bool)                              { return nil, false }
func (c *cloud) ProviderName() string                                              { return "reference" }
func (c *cloud) HasClusterID() bool                                                { return true }

func told(method, object string) { fmt.Fprintln(os.Stderr, "cloud:", method, object) }

// An ID of another scheme is an error, as in most Go managers: false without an error would delete the Node.
func (c *cloud) has(method string, node *v1.Node) (string, bool, error) {
	told(method, node.Name)
	name := node.Name
	if id := node.Spec.ProviderID; id != "" {
		own, is := strings.CutPrefix(id, scheme)
		if !is {
			return "", false, fmt.Errorf("provider ID %q is not of this cloud", id)
		}
		name = own
	}
	text, err := os.ReadFile(c.file)
	if err != nil {
		return "", false, err
	}
	return name, slices.Contains(strings.Fields(string(text)), name), nil
}

func (c *cloud) InstanceExists(_ context.Context, node *v1.Node) (bool, error) {
	_, is, err := c.has("InstanceExists", node)
	return is, err
}

func (c *cloud) InstanceShutdown(_ context.Context, node *v1.Node) (bool, error) {
	_, _, err := c.has("InstanceShutdown", node)
	return false, err
}

func (c *cloud) InstanceMetadata(_ context.Context, node *v1.Node) (*cloudprovider.InstanceMetadata, error) {
	name, is, err := c.has("InstanceMetadata", node)
	if err == nil && !is {
		err = cloudprovider.InstanceNotFound
	}
	if err != nil {
		return nil, err
	}
	return &cloudprovider.InstanceMetadata{
		ProviderID:    scheme + name,
		InstanceType:  "small",
		NodeAddresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "192.0.2.1"}},
	}, nil
}

func object(service *v1.Service) string { return service.Namespace + "/" + service.Name }

func status(address string) *v1.LoadBalancerStatus {
	return &v1.LoadBalancerStatus{Ingress: []v1.LoadBalancerIngress{{IP: address}}}
}

func (c *cloud) GetLoadBalancer(_ context.Context, _ string, service *v1.Service) (*v1.LoadBalancerStatus, bool, error) {
	told("GetLoadBalancer", object(service))
	c.lock.Lock()
	defer c.lock.Unlock()
	address, is := c.balancers[object(service)]
	return status(address), is, nil
}

func (c *cloud) GetLoadBalancerName(_ context.Context, _ string, service *v1.Service) string {
	return cloudprovider.DefaultLoadBalancerName(service)
}

func (c *cloud) EnsureLoadBalancer(_ context.Context, _ string, service *v1.Service, _ []*v1.Node) (*v1.LoadBalancerStatus, error) {
	told("EnsureLoadBalancer", object(service))
	c.lock.Lock()
	defer c.lock.Unlock()
	c.balancers[object(service)] = "203.0.113.1"
	return status("203.0.113.1"), nil
}

func (c *cloud) UpdateLoadBalancer(_ context.Context, _ string, service *v1.Service, _ []*v1.Node) error {
	told("UpdateLoadBalancer", object(service))
	return nil
}

func (c *cloud) EnsureLoadBalancerDeleted(_ context.Context, _ string, service *v1.Service) error {
	told("EnsureLoadBalancerDeleted", object(service))
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.balancers, object(service))
	return nil
}
