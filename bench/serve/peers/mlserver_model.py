"""MLServer's runtime for ONNX files by onnxruntime, as its documentation writes custom ones."""

import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse
from mlserver.utils import get_model_uri


class OnnxModel(MLModel):
    async def load(self) -> bool:
        self.session = onnxruntime.InferenceSession(await get_model_uri(self._settings))
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        feeds = {one.name: NumpyCodec.decode_input(one) for one in payload.inputs}
        outputs = self.session.run(None, feeds)
        names = [one.name for one in self.session.get_outputs()]
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output(n, v) for n, v in zip(names, outputs)])
