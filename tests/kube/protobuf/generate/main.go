// Writes kube/protobuf/messages.txt: what the fields of Kubernetes' messages are on the wire and in JSON.
//
//	cd tests/kube/protobuf/generate && go mod tidy && go run . > ../../../../kube/protobuf/messages.txt
//
// The Go types carry both in their tags: the number in `protobuf:"…"`, the name and omitempty in `json:"…"`.
package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	scheduling "k8s.io/api/scheduling/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kinds that a client sends, by their apiVersion; "*" is every apiVersion.
var kinds = []struct {
	version string
	objects []any
}{
	{"*", []any{meta.DeleteOptions{}, meta.Status{}}},
	{"meta.k8s.io/v1", []any{meta.PartialObjectMetadata{}}},
	{"v1", []any{
		core.Binding{}, core.ConfigMap{}, core.Endpoints{}, core.Event{}, core.LimitRange{}, core.Namespace{},
		core.Node{}, core.PersistentVolumeClaim{}, core.Pod{}, core.ResourceQuota{}, core.Secret{}, core.Service{},
		core.ServiceAccount{},
	}},
	{"apiextensions.k8s.io/v1", []any{apiextensions.CustomResourceDefinition{}}},
	{"authentication.k8s.io/v1", []any{
		authentication.SelfSubjectReview{}, authentication.TokenRequest{}, authentication.TokenReview{},
	}},
	{"authorization.k8s.io/v1", []any{
		authorization.LocalSubjectAccessReview{}, authorization.SelfSubjectAccessReview{},
		authorization.SelfSubjectRulesReview{}, authorization.SubjectAccessReview{},
	}},
	{"autoscaling/v1", []any{autoscaling.Scale{}}},
	{"batch/v1", []any{batch.Job{}}},
	{"coordination.k8s.io/v1", []any{coordination.Lease{}}},
	{"events.k8s.io/v1", []any{events.Event{}}},
	{"networking.k8s.io/v1", []any{networking.NetworkPolicy{}}},
	{"policy/v1", []any{policy.Eviction{}, policy.PodDisruptionBudget{}}},
	{"policy/v1beta1", []any{policy.Eviction{}}}, // the same message as in v1
	{"scheduling.k8s.io/v1", []any{scheduling.PriorityClass{}}},
}

// Messages whose JSON is something other than an object of their fields.
var special = map[string]string{
	"meta.Time": "Time", "meta.MicroTime": "MicroTime", "meta.FieldsV1": "JSON",
	"runtime.RawExtension": "JSON", "resource.Quantity": "Quantity", "intstr.IntOrString": "IntOrString",
	"authentication.ExtraValue": "Items", "authorization.ExtraValue": "Items", "apiextensions.JSON": "JSON",
	"apiextensions.JSONSchemaPropsOrBool":        "SchemaOrBool",
	"apiextensions.JSONSchemaPropsOrArray":       "SchemaOrArray",
	"apiextensions.JSONSchemaPropsOrStringArray": "SchemaOrTexts",
}

var messages = map[string][]string{} // name → fields

func main() {
	var roots []string
	for _, group := range kinds {
		for _, object := range group.objects {
			t := reflect.TypeOf(object)
			roots = append(roots, fmt.Sprintf("kind %s %s = %s", group.version, t.Name(), message(t)))
		}
	}
	// The schema is behind messages that are special, so that nothing else leads to it.
	message(reflect.TypeOf(apiextensions.JSONSchemaProps{}))
	fmt.Println(heading + strings.Join(roots, "\n"))
	names := make([]string, 0, len(messages))
	for name := range messages {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Printf("\n%s\n%s", name, wrapped(messages[name]))
	}
}

const heading = `# What the fields of Kubernetes' protobuf messages are: number, JSON name, type.
# Made by tests/kube/protobuf/generate from the Go types; do not edit.
#
# [T] is a list, {T} a map with texts for keys, ^T a message whose fields belong to the one around it.
# A zero is dropped, as omitempty does in JSON, unless the type ends with "!".

`

// message notes the fields of a struct and returns its name in the table.
func message(t reflect.Type) string {
	name := qualified(t)
	if _, known := messages[name]; known {
		return name
	}
	messages[name] = nil
	for i := range t.NumField() {
		if field := describe(t.Field(i)); field != "" {
			messages[name] = append(messages[name], field)
		}
	}
	return name
}

func describe(field reflect.StructField) string {
	tag := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(tag) < 2 {
		if field.Type.Name() != "TypeMeta" {
			fmt.Fprintf(os.Stderr, "%s is not on the wire\n", field.Name)
		}
		return ""
	}
	json := strings.Split(field.Tag.Get("json"), ",")
	if strings.Contains(field.Tag.Get("json"), "inline") {
		return fmt.Sprintf("%s ^%s", tag[1], message(field.Type))
	}
	kept := ""
	scalar := field.Type.Kind() != reflect.Struct && field.Type.Kind() != reflect.Map && !isList(field.Type)
	if scalar && !strings.Contains(field.Tag.Get("json"), "omitempty") || field.Type.Kind() == reflect.Pointer && leaf(field.Type.Elem()) {
		kept = "!"
	}
	return fmt.Sprintf("%s %s:%s%s", tag[1], json[0], kind(field.Type), kept)
}

func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8
}

func leaf(t reflect.Type) bool { return t.Kind() != reflect.Struct && t.Kind() != reflect.Map }

// kind returns the type of a field in the table.
func kind(t reflect.Type) string {
	if name, found := special[qualified(t)]; found {
		return name
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kind(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[" + kind(t.Elem()) + "]"
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			panic(t)
		}
		return "{" + kind(t.Elem()) + "}"
	case reflect.Struct:
		return message(t)
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64, reflect.Float64:
		return t.Kind().String()
	}
	panic(t)
}

// qualified is the short name of a type: of k8s.io/api/core/v1 it keeps core.
func qualified(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	group := parts[len(parts)-1]
	if strings.HasPrefix(group, "v1") && len(parts) > 1 {
		group = parts[len(parts)-2]
	}
	return group + "." + t.Name()
}

// wrapped lays fields out in lines of at most 118 characters.
func wrapped(fields []string) string {
	if len(fields) == 0 {
		return ""
	}
	var text strings.Builder
	line := " "
	for _, field := range fields {
		if len(line)+1+len(field) > 118 {
			text.WriteString(line + "\n")
			line = " "
		}
		line += " " + field + ","
	}
	text.WriteString(strings.TrimSuffix(line, ",") + "\n")
	return text.String()
}
