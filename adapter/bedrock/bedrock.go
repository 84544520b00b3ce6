// Package bedrock converts between package adapter and the types of the AWS SDK
// for Go, github.com/aws/aws-sdk-go-v2/service/bedrockruntime. The declarations
// that its functions take are those of adapter.Bedrock.
package bedrock

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/toolcrib/toolcrib/adapter"
)

// want returns an error when declarations are of another API.
func want(d *adapter.Declarations) error {
	if got := d.Adapter().Provider(); got != adapter.Bedrock {
		return fmt.Errorf("adapter/bedrock: the declarations are for %q: expected those of %q", got, adapter.Bedrock)
	}
	return nil
}

// ToolConfig returns the declared tools. It is nil when there are none, since the
// API refuses an empty list.
func ToolConfig(d *adapter.Declarations) (*types.ToolConfiguration, error) {
	if err := want(d); err != nil {
		return nil, err
	}
	if len(d.Tools) == 0 {
		return nil, nil
	}
	config := &types.ToolConfiguration{}
	for _, t := range d.Tools {
		schema, err := documentOf(t.Schema)
		if err != nil {
			return nil, fmt.Errorf("adapter/bedrock: %s: %w", t.Tool, err)
		}
		config.Tools = append(config.Tools, &types.ToolMemberToolSpec{Value: types.ToolSpecification{
			Name: aws.String(t.Wire), Description: aws.String(t.Description),
			InputSchema: &types.ToolInputSchemaMemberJson{Value: schema},
		}})
	}
	return config, nil
}

// messageOf returns the message of an output.
func messageOf(out *bedrockruntime.ConverseOutput) (types.Message, error) {
	member, ok := out.Output.(*types.ConverseOutputMemberMessage)
	if !ok {
		return types.Message{}, errors.New("adapter/bedrock: the output has no message")
	}
	return member.Value, nil
}

// Calls returns the tool calls of an output.
func Calls(d *adapter.Declarations, out *bedrockruntime.ConverseOutput) ([]adapter.Call, error) {
	if err := want(d); err != nil {
		return nil, err
	}
	message, err := messageOf(out)
	if err != nil {
		return nil, err
	}
	blocks := []map[string]toolUse{}
	for _, block := range message.Content {
		use, ok := block.(*types.ContentBlockMemberToolUse)
		if !ok {
			continue
		}
		encoded, err := encodeUse(&use.Value)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, map[string]toolUse{"toolUse": encoded})
	}
	raw, err := json.Marshal(map[string]any{"role": "assistant", "content": blocks})
	if err != nil {
		return nil, err
	}
	return d.Calls(raw)
}

// toolUse is the block of a call.
type toolUse struct {
	ID    string          `json:"toolUseId"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

func encodeUse(use *types.ToolUseBlock) (toolUse, error) {
	out := toolUse{ID: aws.ToString(use.ToolUseId), Name: aws.ToString(use.Name), Input: json.RawMessage(`{}`)}
	if use.Input == nil {
		return out, nil
	}
	input, err := use.Input.MarshalSmithyDocument()
	if err != nil {
		return out, fmt.Errorf("adapter/bedrock: the input of %s: %w", out.Name, err)
	}
	out.Input = input
	return out, nil
}

// Messages returns what follows an output in the conversation: its message, and
// the one that answers its calls.
func Messages(ctx context.Context, d *adapter.Declarations, out *bedrockruntime.ConverseOutput, answers []adapter.Answer) ([]types.Message, error) {
	if err := want(d); err != nil {
		return nil, err
	}
	message, err := messageOf(out)
	if err != nil {
		return nil, err
	}
	results, err := d.Results(ctx, answers)
	if err != nil {
		return nil, err
	}
	list := []types.Message{message}
	for _, raw := range results {
		m, err := decodeResults(raw)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// media is an image, a document or a video of a result.
type media struct {
	Format string `json:"format"`
	Name   string `json:"name"`
	Source struct {
		Bytes string `json:"bytes"`
	} `json:"source"`
}

// resultBlock is one block of a result. One member is set.
type resultBlock struct {
	Text     *string         `json:"text"`
	JSON     json.RawMessage `json:"json"`
	Image    *media          `json:"image"`
	Document *media          `json:"document"`
	Video    *media          `json:"video"`
}

// decodeResults reads the message that carries results.
func decodeResults(raw json.RawMessage) (types.Message, error) {
	var m struct {
		Content []struct {
			Result struct {
				ID      string        `json:"toolUseId"`
				Status  string        `json:"status"`
				Content []resultBlock `json:"content"`
			} `json:"toolResult"`
		} `json:"content"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return types.Message{}, err
	}
	out := types.Message{Role: types.ConversationRoleUser}
	for _, block := range m.Content {
		result := types.ToolResultBlock{ToolUseId: aws.String(block.Result.ID), Status: types.ToolResultStatus(block.Result.Status)}
		for _, c := range block.Result.Content {
			converted, err := c.convert()
			if err != nil {
				return types.Message{}, err
			}
			result.Content = append(result.Content, converted)
		}
		out.Content = append(out.Content, &types.ContentBlockMemberToolResult{Value: result})
	}
	return out, nil
}

func (c *resultBlock) convert() (types.ToolResultContentBlock, error) {
	switch {
	case c.Text != nil:
		return &types.ToolResultContentBlockMemberText{Value: *c.Text}, nil
	case c.JSON != nil:
		v, err := documentOf(c.JSON)
		return &types.ToolResultContentBlockMemberJson{Value: v}, err
	case c.Image != nil:
		data, err := c.Image.data()
		return &types.ToolResultContentBlockMemberImage{Value: types.ImageBlock{
			Format: types.ImageFormat(c.Image.Format), Source: &types.ImageSourceMemberBytes{Value: data},
		}}, err
	case c.Document != nil:
		data, err := c.Document.data()
		return &types.ToolResultContentBlockMemberDocument{Value: types.DocumentBlock{
			Format: types.DocumentFormat(c.Document.Format), Name: aws.String(c.Document.Name),
			Source: &types.DocumentSourceMemberBytes{Value: data},
		}}, err
	case c.Video != nil:
		data, err := c.Video.data()
		return &types.ToolResultContentBlockMemberVideo{Value: types.VideoBlock{
			Format: types.VideoFormat(c.Video.Format), Source: &types.VideoSourceMemberBytes{Value: data},
		}}, err
	}
	return nil, errors.New("adapter/bedrock: a block of a result is of no known kind")
}

// data decodes what a tool gave as base64.
func (m *media) data() ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(m.Source.Bytes)
	if err != nil {
		return nil, fmt.Errorf("adapter/bedrock: the %s of a result is not base64: %w", m.Format, err)
	}
	return data, nil
}
