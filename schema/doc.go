// Package schema derives, compiles and checks JSON Schemas.
package schema
