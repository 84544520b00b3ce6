package toolcrib_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// stateless are types whose package-level values may exist although they hold pointers: they are never
// changed after they are made, or guard themselves and hold nothing that a caller could observe.
var stateless = []string{
	"*regexp.Regexp",
	"*strings.Replacer",
	"*html/template.Template",
	"*text/template.Template",
	"embed.FS",
	"reflect.Type",
	"sync.Pool",
	"*math/big.Int",
	"net/netip.Addr",
	"net/netip.Prefix",
}

// constants are package-level pointers to values that nothing writes after they are made, with what they
// are. The check that nothing assigns through them holds for them too.
var constants = map[string]string{
	"schema.anyNode":   "the leaf of every schema that allows everything",
	"schema.neverNode": "the leaf of every schema that allows nothing",
}

// A package-level variable is either one of the stateless types, an error, or plain data; and nothing
// assigns to it, or to a part of it, or takes its address.
func TestNoMutablePackageState(t *testing.T) {
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedSyntax |
			packages.NeedTypes | packages.NeedTypesInfo,
	}
	loaded, err := packages.Load(config, "./...")
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range loaded {
		rel := strings.TrimPrefix(strings.TrimPrefix(pkg.PkgPath, module), "/")
		if inTestTree(rel) {
			continue
		}
		for _, broken := range pkg.Errors {
			t.Errorf("%s: %v", pkg.PkgPath, broken)
		}
		for _, fault := range packageState(pkg, rel) {
			t.Errorf("%s: package-level variable %s %s", pkg.Fset.Position(fault.at), fault.name, fault.why)
		}
	}
}

type stateFault struct {
	at        token.Pos
	name, why string
}

func packageState(pkg *packages.Package, rel string) []stateFault {
	var faults []stateFault
	scope := pkg.Types.Scope()
	for _, name := range scope.Names() {
		variable, ok := scope.Lookup(name).(*types.Var)
		if _, constant := constants[rel+"."+name]; ok && !constant && !mayStand(variable.Type(), nil) {
			faults = append(faults, stateFault{variable.Pos(), name, "has the type " + variable.Type().String() + ", which can change"})
		}
	}
	for _, file := range pkg.Syntax {
		ast.Inspect(file, func(node ast.Node) bool {
			for _, expr := range changed(pkg.TypesInfo, node) {
				if variable := packageVar(pkg, expr); variable != nil {
					faults = append(faults, stateFault{node.Pos(), variable.Name(), "is changed"})
				}
			}
			return true
		})
	}
	return faults
}

// mayStand reports whether a value of this type can be a constant in all but name: plain data all the way
// down, a function, an error, or one of the stateless types.
func mayStand(t types.Type, outer []types.Type) bool {
	if slices.Contains(stateless, t.String()) || types.Implements(t, errorInterface()) || slices.Contains(outer, t) {
		return true
	}
	outer = append(outer, t)
	switch u := t.Underlying().(type) {
	case *types.Basic, *types.Signature:
		return true
	case *types.Array:
		return mayStand(u.Elem(), outer)
	case *types.Slice:
		return mayStand(u.Elem(), outer)
	case *types.Map:
		return mayStand(u.Key(), outer) && mayStand(u.Elem(), outer)
	case *types.Struct:
		return fieldsMayStand(t, u, outer)
	default:
		return false
	}
}

// fieldsMayStand refuses the types of package sync and its kin, which are plain data only inside.
func fieldsMayStand(t types.Type, u *types.Struct, outer []types.Type) bool {
	if named, ok := t.(*types.Named); ok && named.Obj().Pkg() != nil && strings.HasPrefix(named.Obj().Pkg().Path(), "sync") {
		return false
	}
	for i := range u.NumFields() {
		if !mayStand(u.Field(i).Type(), outer) {
			return false
		}
	}
	return true
}

func errorInterface() *types.Interface {
	return types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
}

// changed returns the expressions that node writes to or gives away by address.
func changed(info *types.Info, node ast.Node) []ast.Expr {
	switch n := node.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		if ident, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 {
			builtin, ok := info.Uses[ident].(*types.Builtin)
			if ok && slices.Contains([]string{"delete", "clear", "copy"}, builtin.Name()) {
				return n.Args[:1]
			}
		}
	}
	return nil
}

// packageVar returns the variable of pkg that expr is, or is a part of.
func packageVar(pkg *packages.Package, expr ast.Expr) *types.Var {
	switch e := expr.(type) {
	case *ast.ParenExpr:
		return packageVar(pkg, e.X)
	case *ast.IndexExpr:
		return packageVar(pkg, e.X)
	case *ast.StarExpr:
		return packageVar(pkg, e.X)
	case *ast.SelectorExpr:
		return packageVar(pkg, e.X)
	case *ast.Ident:
		variable, ok := pkg.TypesInfo.Uses[e].(*types.Var)
		if ok && variable.Parent() == pkg.Types.Scope() {
			return variable
		}
	}
	return nil
}
