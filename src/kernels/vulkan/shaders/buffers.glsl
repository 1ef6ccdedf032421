// What all shaders share: buffers by address, and the number of an invocation. Sizes of workgroups are those of kGroup in shaders.h.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats { float at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Words { uint at[]; };

const uint kGroup = 256;

// A dispatch has two dimensions, because the first alone may be limited to 65,535 workgroups.
uint group_number() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }
uint invocation_number() { return group_number() * kGroup + gl_LocalInvocationIndex; }
